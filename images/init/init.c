/*
 * init: pid 1 of every worker. Starts the payload's steps in order, ends every process when a step
 * ends, reports facts to the controller, and holds until the controller has read the cgroup.
 *
 *   init --deadline-ms N --grace-ms N --hold-ms N
 *        [[--timeout-ms N] [--exits N,N...] --step ARGC ARG...]...
 *
 * --timeout-ms and --exits are about the step after them: how long it may take before it gets
 * SIGTERM and, after the grace, SIGKILL; and after which exit codes (0 without it) the next starts.
 *
 * Compiled while an image is built, with no dependency, and baked in as /.harness/init:
 *   gcc -std=gnu11 -static -Os -Wall -Wextra -Werror -o init init.c
 *
 * stdin: lines from the controller. `go` starts the first step; `term` ends the payload (SIGTERM to
 * all, SIGKILL after the grace); `kill` ends it at once; `end` leaves the hold. End of file at any
 * time means that the controller is gone: everything is killed and init exits.
 *
 * stdout: frames to the controller, one type byte, a big-endian u32 length, that many bytes.
 *   R ready, waiting for go        S step started (index)      T outer deadline hit
 *   O E bytes of the payload       X step ended (JSON)         F finished and holding
 * X: {"index":0,"exit":0,"signal":null,"execErrno":0,"durationMs":7}, exit or signal being null; a
 * step that reached its timeout has "timedOut":true as its last member, and is the last step.
 *
 * Rules:
 *   - Undumpable, so that a payload of the same uid can't read or write it through /proc or ptrace.
 *   - The payload gets /dev/null and two pipes, never a descriptor of init's.
 *   - No heap. Bytes are read from the payload only when the last ones have been handed on, so a
 *     slow controller slows the payload down and nothing is lost.
 *   - Every wait has an end: a step by the deadline, a silent controller by the hold.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER = 5,
    CHUNK = 65536,                 /* most bytes of one O or E frame */
    REPORTS = 4096,                /* room for the small frames between two chunks */
    KILL_MS = 10000,               /* how long processes may take to die of SIGKILL */
    POLL_MS = 20,                  /* while processes are dying */
    CANNOT_EXECUTE = 126,          /* as a shell has them */
    NOT_FOUND = 127,
    EXIT_CONTROLLER_GONE = 3,
    EXIT_USAGE = 64,
    EXIT_BROKEN = 70,
};

struct step {
    int argc;
    char **argv;
    int64_t timeout_ms;            /* 0: none of its own */
    const char *exits;             /* allowed exit codes, as in the arguments */
};

struct running {
    int index;
    pid_t pid;                     /* of the step's main process; 0 when it has been reaped */
    int status;                    /* as waitpid gives it */
    int out, err, exec_error;      /* read ends; -1 when at their end */
    int64_t started, ended;
    int64_t timeout_at;            /* INT64_MAX: none, or reached */
    int timed_out;
};

static int64_t deadline_ms, grace_ms, hold_ms;
static int64_t deadline_at = INT64_MAX; /* set by `go` */
static int64_t kill_at = INT64_MAX;     /* set by `term` */
static int signals = -1;
static int go_seen, stopping, end_seen;

static unsigned char queue[2 * (HEADER + CHUNK) + REPORTS];
static size_t queue_start, queue_end;

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* Leaving pid 1 makes the kernel kill every other process of the pid namespace. */
static void leave(int code) { kill(-1, SIGKILL); _exit(code); }

static void broken(const char *what)
{
    dprintf(STDERR_FILENO, "init: %s: %s\n", what, strerror(errno));
    leave(EXIT_BROKEN);
}

/* ---- frames to the controller ---- */

static int queue_is_empty(void) { return queue_start == queue_end; }

static void frame_header(char type, size_t length)
{
    unsigned char *at = queue + queue_end;
    at[0] = (unsigned char)type;
    at[1] = (unsigned char)(length >> 24);
    at[2] = (unsigned char)(length >> 16);
    at[3] = (unsigned char)(length >> 8);
    at[4] = (unsigned char)length;
    queue_end += HEADER + length;
}

static void report(char type, const char *text)
{
    size_t length = strlen(text);
    if (sizeof queue - queue_end < HEADER + length) {
        errno = ENOBUFS;
        broken("report");
    }
    memcpy(queue + queue_end + HEADER, text, length);
    frame_header(type, length);
}

static void flush_queue(void)
{
    while (!queue_is_empty()) {
        ssize_t count = write(STDOUT_FILENO, queue + queue_start, queue_end - queue_start);
        if (count > 0) {
            queue_start += (size_t)count;
        } else if (count < 0 && errno == EINTR) {
            continue;
        } else if (count < 0 && errno == EAGAIN) {
            return;
        } else {
            leave(EXIT_CONTROLLER_GONE);
        }
    }
    queue_start = queue_end = 0;
}

/* Move at most one chunk from a payload pipe into the queue; close the pipe at its end. */
static void read_payload(int *pipe_end, char type)
{
    ssize_t count = read(*pipe_end, queue + queue_end + HEADER, CHUNK);
    if (count > 0) {
        frame_header(type, (size_t)count);
    } else if (count == 0) {
        close(*pipe_end);
        *pipe_end = -1;
    } else if (errno != EAGAIN && errno != EINTR) {
        broken("read from the payload");
    }
}

/* ---- lines from the controller ---- */

static void obey(const char *line)
{
    if (strcmp(line, "go") == 0) {
        go_seen = 1;
        deadline_at = now_ms() + deadline_ms;
    } else if (strcmp(line, "term") == 0) {
        if (!stopping) {
            kill(-1, SIGTERM);
            kill_at = now_ms() + grace_ms;
        }
        stopping = 1;
    } else if (strcmp(line, "kill") == 0) {
        kill_at = now_ms();
        stopping = 1;
    } else if (strcmp(line, "end") == 0) {
        end_seen = 1;
    } else {
        errno = EPROTO;
        broken("line from the controller");
    }
}

static void read_lines(void)
{
    static char line[16];
    static size_t length;
    char bytes[64];
    ssize_t count = read(STDIN_FILENO, bytes, sizeof bytes);
    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR))
        leave(EXIT_CONTROLLER_GONE);
    for (ssize_t at = 0; at < count; at++) {
        if (bytes[at] == '\n') {
            line[length] = 0;
            length = 0;
            obey(line);
        } else if (length + 1 < sizeof line) {
            line[length++] = bytes[at];
        } else {
            errno = EPROTO;
            broken("line from the controller");
        }
    }
}

/* ---- one round of waiting ---- */

/* Wait for anything to happen, but not beyond `until`; hand bytes on in every direction. */
static void pump(struct running *step, int64_t until)
{
    int draining = step != NULL && queue_is_empty();
    struct pollfd watched[] = {
        {STDIN_FILENO, POLLIN, 0},
        {queue_is_empty() ? -1 : STDOUT_FILENO, POLLOUT, 0},
        {signals, POLLIN, 0},
        {draining ? step->out : -1, POLLIN, 0},
        {draining ? step->err : -1, POLLIN, 0},
    };
    int64_t left = until - now_ms();
    int wait_ms = left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
    if (poll(watched, sizeof watched / sizeof *watched, wait_ms) < 0) {
        if (errno == EINTR)
            return;
        if (errno != EINVAL)
            broken("poll");
        /* The payload lowered our RLIMIT_NOFILE (prlimit): look at everything, now and then. */
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        for (size_t at = 0; at < sizeof watched / sizeof *watched; at++)
            watched[at].revents = watched[at].fd >= 0 ? POLLIN : 0;
    }
    if (watched[0].revents)
        read_lines();
    if (watched[2].revents) {
        struct signalfd_siginfo ignored;
        while (read(signals, &ignored, sizeof ignored) > 0)
            ;
    }
    if (watched[3].revents)
        read_payload(&step->out, 'O');
    if (watched[4].revents)
        read_payload(&step->err, 'E');
    flush_queue();
}

/* Hand on what is queued, for at most the hold: a controller that takes nothing is gone. */
static void deliver(void)
{
    int64_t until = now_ms() + hold_ms;
    flush_queue();
    while (!queue_is_empty()) {
        if (now_ms() >= until)
            leave(EXIT_CONTROLLER_GONE);
        pump(NULL, until);
    }
}

/* Reap all that ended. Returns 1 when no child is left. */
static int reap(struct running *step)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid == 0)
            return 0;
        if (pid < 0) {
            if (errno == EINTR)
                continue;
            return errno == ECHILD;
        }
        if (pid == step->pid) {
            step->pid = 0;
            step->status = status;
            step->ended = now_ms();
        }
    }
}

/* ---- the payload ---- */

/* Like execvp, but a file without a known header is an error and never a shell script. */
static void execute(char **argv)
{
    const char *path = getenv("PATH");
    int denied = 0;
    if (strchr(argv[0], '/') != NULL || path == NULL) {
        execve(argv[0], argv, environ);
        return;
    }
    while (*path) {
        char name[4096];
        size_t length = strcspn(path, ":");
        int count = snprintf(name, sizeof name, "%.*s/%s", (int)length, path, argv[0]);
        if (length > 0 && count > 0 && (size_t)count < sizeof name) {
            execve(name, argv, environ);
            if (errno == EACCES)
                denied = 1;
            else if (errno != ENOENT && errno != ENOTDIR)
                return;
        }
        path += length + (path[length] == ':');
    }
    errno = denied ? EACCES : ENOENT;
}

static void become_payload(char **argv, int null, int out, int err, int exec_error)
{
    sigset_t none;
    setsid();
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    dup2(null, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    /* Descriptors that an engine leaked to us stay here too; older kernels lack the call. */
    syscall(SYS_close_range, 3U, ~0U, 1U << 2 /* CLOSE_RANGE_CLOEXEC */);
    /* No other payload process lives now, and nothing of the controller's is open any more. */
    prctl(PR_SET_DUMPABLE, 1);
    int adjust = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (adjust >= 0 && write(adjust, "1000", 4) == 4)
        close(adjust);
    execute(argv);
    int error = errno;
    if (write(exec_error, &error, sizeof error) != sizeof error)
        _exit(125);
    _exit(error == ENOENT ? NOT_FOUND : CANNOT_EXECUTE);
}

static void close_both(int pipe_ends[2])
{
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

/* Returns 0, or the errno of what could not be had: a payload of the same uid can lower init's
 * own limits (prlimit), so a step that can't be started is that step's failure. */
static int start(struct running *step, int index, const struct step *wanted, char **argv)
{
    int out[2] = {-1, -1}, err[2] = {-1, -1}, exec_error[2] = {-1, -1}, failed = 0;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    *step = (struct running){.index = index, .out = -1, .err = -1, .exec_error = -1,
                             .started = now_ms(), .ended = now_ms(), .timeout_at = INT64_MAX};
    if (wanted->timeout_ms > 0)
        step->timeout_at = step->started + wanted->timeout_ms;
    if (null < 0 || pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC) ||
        pipe2(exec_error, O_CLOEXEC | O_NONBLOCK) || (step->pid = fork()) < 0) {
        failed = errno;
        step->pid = 0;
        close(null);
        close_both(out);
        close_both(err);
        close_both(exec_error);
        return failed;
    }
    if (step->pid == 0)
        become_payload(argv, null, out[1], err[1], exec_error[1]);
    close(null);
    close(out[1]);
    close(err[1]);
    close(exec_error[1]);
    step->out = out[0];
    step->err = err[0];
    step->exec_error = exec_error[0];
    fcntl(step->out, F_SETFL, O_NONBLOCK);
    fcntl(step->err, F_SETFL, O_NONBLOCK);
    return 0;
}

static void watch_clocks(struct running *step)
{
    if (now_ms() >= step->timeout_at) {
        step->timeout_at = INT64_MAX;
        if (!stopping) {           /* else it is being ended already, for another reason */
            step->timed_out = 1;
            kill(-1, SIGTERM);
            kill_at = now_ms() + grace_ms;
        }
    }
    if (now_ms() >= deadline_at) {
        report('T', "");
        deadline_at = INT64_MAX;
        kill_at = now_ms();
        stopping = 1;
    }
    if (now_ms() >= kill_at) {
        kill(-1, SIGKILL);
        kill_at = INT64_MAX;
    }
}

/* Kill and reap until nothing is left, handing on output all the while. */
static void end_everything(struct running *step)
{
    int64_t until = now_ms() + KILL_MS;
    while (kill(-1, SIGKILL), !reap(step)) {
        if (now_ms() >= until) {
            errno = EBUSY;
            broken("processes that do not die");
        }
        pump(step, now_ms() + POLL_MS);
    }
}

/* Every writer is dead, so both pipes come to their end; only the controller can be slow. */
static void drain(struct running *step)
{
    int64_t until = now_ms() + hold_ms;
    while (step->out >= 0 || step->err >= 0) {
        size_t before = queue_end - queue_start;
        if (now_ms() >= until)
            leave(EXIT_CONTROLLER_GONE);
        pump(step, until);
        if (queue_end - queue_start != before)
            until = now_ms() + hold_ms;
    }
}

static void report_end(const struct running *step, int exec_errno)
{
    char text[192], exited[16] = "null", signalled[16] = "null";
    if (WIFSIGNALED(step->status))
        snprintf(signalled, sizeof signalled, "%d", WTERMSIG(step->status));
    else
        snprintf(exited, sizeof exited, "%d", WEXITSTATUS(step->status));
    snprintf(text, sizeof text,
             "{\"index\":%d,\"exit\":%s,\"signal\":%s,\"execErrno\":%d,\"durationMs\":%lld%s}",
             step->index, exited, signalled, exec_errno,
             (long long)(step->ended - step->started),
             step->timed_out ? ",\"timedOut\":true" : "");
    deliver();
    report('X', text);
    deliver();
}

/* Tell whether an exit code is in a list like "0,5". */
static int is_allowed(const char *exits, int code)
{
    for (char *end; *exits; exits = *end == ',' ? end + 1 : end)
        if (strtol(exits, &end, 10) == code)
            return 1;
    return 0;
}

/* Run one step to its end. Returns 1 when the next one may start. */
static int run(int index, const struct step *wanted, char **argv)
{
    struct running step;
    char text[16];
    snprintf(text, sizeof text, "%d", index);
    report('S', text);
    int exec_errno = start(&step, index, wanted, argv);
    if (exec_errno) {
        step.status = CANNOT_EXECUTE << 8;
        report_end(&step, exec_errno);
        return 0;
    }
    while (reap(&step), step.pid != 0) {
        watch_clocks(&step);
        pump(&step, earlier(step.timeout_at, earlier(deadline_at, kill_at)));
    }
    end_everything(&step);
    drain(&step);
    if (read(step.exec_error, &exec_errno, sizeof exec_errno) != sizeof exec_errno)
        exec_errno = 0;
    close(step.exec_error);
    report_end(&step, exec_errno);
    return !exec_errno && !step.timed_out && WIFEXITED(step.status) &&
           is_allowed(wanted->exits, WEXITSTATUS(step.status));
}

/* ---- arguments ---- */

static int64_t parse_number(const char *text)
{
    char *end;
    errno = 0;
    long long value = text == NULL ? -1 : strtoll(text, &end, 10);
    if (value < 0 || errno || *end || end == text) {
        dprintf(STDERR_FILENO, "init: expected a number\n");
        _exit(EXIT_USAGE);
    }
    return value;
}

/* A list of exit codes: digits with single commas between them. */
static const char *parse_exits(const char *text)
{
    int digits = 0, good = text != NULL;
    for (const char *at = text; good && *at; at++) {
        if (*at == ',')
            good = digits > 0;
        else
            good = *at >= '0' && *at <= '9' && digits < 3;
        digits = *at == ',' ? 0 : digits + 1;
    }
    if (!good || digits == 0) {
        dprintf(STDERR_FILENO, "init: expected exit codes\n");
        _exit(EXIT_USAGE);
    }
    return text;
}

/* Cut argv into steps in place. Returns their number. */
static int parse_arguments(int argc, char **argv, struct step *steps)
{
    static const struct step plain = {.exits = "0"};
    struct step next = plain;
    int count = 0;
    for (int at = 1; at < argc; at += 2) {
        if (strcmp(argv[at], "--exits") == 0) {
            next.exits = parse_exits(argv[at + 1]);
            continue;
        }
        int64_t value = parse_number(argv[at + 1]);
        if (strcmp(argv[at], "--deadline-ms") == 0) {
            deadline_ms = value;
        } else if (strcmp(argv[at], "--grace-ms") == 0) {
            grace_ms = value;
        } else if (strcmp(argv[at], "--hold-ms") == 0) {
            hold_ms = value;
        } else if (strcmp(argv[at], "--timeout-ms") == 0) {
            next.timeout_ms = value;
        } else if (strcmp(argv[at], "--step") == 0 && value > 0 && value <= argc - at - 2) {
            next.argc = (int)value;
            next.argv = argv + at + 2;
            steps[count++] = next;
            next = plain;
            at += (int)value;
        } else {
            dprintf(STDERR_FILENO, "init: argument %d is not known\n", at);
            _exit(EXIT_USAGE);
        }
    }
    return count;
}

static void run_steps(int argc, char **argv)
{
    struct step steps[argc];
    int count = parse_arguments(argc, argv, steps);
    report('R', "");
    for (int64_t until = now_ms() + hold_ms; !go_seen && !stopping;) {
        if (now_ms() >= until)
            leave(EXIT_CONTROLLER_GONE);
        pump(NULL, until);
    }
    for (int index = 0; index < count && !stopping; index++) {
        /* The argument after a step's last one is `--step` or the end; execve wants NULL there. */
        char *words[steps[index].argc + 1];
        memcpy(words, steps[index].argv, (size_t)steps[index].argc * sizeof *words);
        words[steps[index].argc] = NULL;
        if (!run(index, &steps[index], words))
            break;
    }
}

static void prepare(void)
{
    sigset_t child;
    if (prctl(PR_SET_DUMPABLE, 0) != 0)
        broken("prctl");
    umask(022);
    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    signals = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    if (signals < 0)
        broken("signalfd");
    if (fcntl(STDIN_FILENO, F_SETFL, O_NONBLOCK) || fcntl(STDOUT_FILENO, F_SETFL, O_NONBLOCK))
        broken("streams");
}

int main(int argc, char **argv)
{
    prepare();
    run_steps(argc, argv);
    report('F', "");
    deliver();
    for (int64_t until = now_ms() + hold_ms; !end_seen && now_ms() < until;)
        pump(NULL, until);
    leave(0);
}
