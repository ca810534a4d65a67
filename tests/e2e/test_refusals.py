"""One refusal for each gate and kind: exit code, words, and nothing written."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import subprocess
import tarfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from harness.execution.image.lock import lock_bytes, read_lock
from harness.model.approval import NAMESPACES
from harness.model.digest import digest_of, parse_digest
from tests.e2e.conftest import At
from tests.e2e.driver import Bed, refused, untouched
from tests.e2e.project import LISTED, approve, only_operation, recipe, reviewers, run, seal, write

pytestmark = pytest.mark.docker

NOBODY = "unix:///nonexistent/docker.sock"


# ---- recipes and files, before a seal ----


def test_an_unknown_recipe_is_refused_with_the_nearest_name(bed: Bed) -> None:
    done = refused(bed, "seal", "chnge", code=2, says="'chnge' is not in recipes/")
    assert "did you mean 'change'?" in done.err


@pytest.mark.parametrize("name", ["../policies/default", "/etc/passwd", "change.yaml", "", "."])
def test_a_recipe_is_a_name_and_never_a_path(bed: Bed, name: str) -> None:
    refused(bed, "seal", name, code=2, says="is not in recipes/")


def test_every_mistake_of_a_recipe_is_named_with_its_place(bed: Bed) -> None:
    text = (
        "version: 1\nkind: bild\ndescription: Bad.\nimage: python\n"
        "steps:\n  - run: [sh, -c, 'echo hi']\n"
        "writable: ['../outside/**']\nenv: { GITHUB_TOKEN: x }\nnetwork: true\n"
    )
    write(bed.project / "recipes" / "bad.yaml", text.encode())
    for words in (("recipe", "check", "bad"), ("seal", "bad")):
        done = refused(bed, *words, code=2, says="recipes/bad.yaml:2:7: ")
        for place in ("6:11", "7:12", "8:8", "9:1"):
            assert f"recipes/bad.yaml:{place}: " in done.err, done.err
    listed = bed("recipe", "list").out
    assert "bad                   has mistakes: harness recipe check bad" in listed


def test_check_looks_at_what_a_recipe_names_and_at_every_policy(bed: Bed) -> None:
    good = (bed.project / "recipes" / "few.yaml").read_text("utf-8")
    mended = good.replace("image: python", "image: pyhton")
    bad = mended.replace("policy: default", "policy: defualt") + "network: true\n"
    write(bed.project / "recipes" / "bad.yaml", bad.encode())
    write(bed.project / "recipes" / "stray.yml", b"version: 1\n")
    policy = (bed.project / "policies" / "default.yaml").read_text("utf-8")
    write(bed.project / "policies" / "unused.yaml", policy.replace("plan: 1", "plan: 99").encode())
    done = refused(bed, "recipe", "check", code=2, says="did you mean the policy 'default'?")
    for expected in (
        "network",
        "policies/unused.yaml",
        "recipes/stray.yml: is never read",
    ):
        assert expected in done.err, done.err
    write(bed.project / "recipes" / "bad.yaml", mended.encode())
    refused(bed, "recipe", "check", "bad", code=2, says="did you mean 'python'?")


def test_a_fifo_is_refused_by_name_without_being_opened(bed: Bed) -> None:
    os.mkfifo(bed.project / "data" / "pipe")
    refused(bed, "seal", "few", code=2, says="data/pipe")


@pytest.mark.parametrize("target", ["/etc/passwd", "../../outside", "../data/../../outside"])
def test_a_symlink_that_leads_out_is_refused_by_name(bed: Bed, target: str) -> None:
    (bed.project / "data" / "out").symlink_to(target)
    refused(bed, "seal", "few", code=2, says="data/out")


def test_secrets_stay_out_and_are_listed(bed: Bed) -> None:
    write(bed.project / ".env", b"PASSWORD=hunter2\n")
    shutil.copy(bed.key("ada"), bed.project / "data" / "deploy_key")
    plan = bed("seal", "few", "--json").json()
    left_out = {item["path"] for item in plan["operations"][0]["disclosure"]["leftOut"]}
    assert {".env", "data/deploy_key"} <= left_out
    shown = bed("plan", "show", plan["plan"]).out
    assert "left out    .env: " in shown
    assert "hunter2" not in shown
    blobs = b"".join(
        path.read_bytes() for path in (bed.state / "objects").rglob("*") if path.is_file()
    )
    assert b"hunter2" not in blobs


# ---- the plan gate ----


def test_an_unapproved_plan_does_not_run(at: At) -> None:
    bed = at("sealed")
    done = refused(bed, "run", bed.facts["plan"], code=4, says="0 of 1; missing 1")
    assert "hint: have it approved" in done.err


def test_a_plan_runs_once(at: At) -> None:
    bed = at("ran")
    refused(bed, "run", bed.facts["plan"], code=4, says="spent already")


@pytest.mark.parametrize("verb", ["approve", "reject", "run", "apply", "undo"])
def test_a_shortened_hash_is_for_looking_only(at: At, verb: str) -> None:
    bed = at("ran")
    digest = bed.facts["plan" if verb in ("approve", "reject", "run") else "diff"]
    for given in (digest[:-1], digest[7:19]):
        refused(bed, verb, given, code=2, says="hash: expected all 64 hex digits")
    assert bed("plan", "show", bed.facts["plan"][7:19]).out


def test_another_projects_plan_is_not_ours(at: At) -> None:
    bed = at("plan approved")
    other = bed.home / "other"
    shutil.copytree(bed.project, other, symlinks=True)
    try:
        for words in (("run",), ("approve", "--key", str(bed.key("ada")))):
            verb, *rest = words
            done = refused(
                bed,
                verb,
                bed.facts["plan"],
                *rest,
                "-C",
                str(other),
                code=2,
                says="of this project",
            )
            assert "hint: " in done.err
    finally:
        shutil.rmtree(other)


@pytest.mark.parametrize("edit", ["policy", "reviewers"])
def test_a_policy_edited_after_the_seal_is_refused(at: At, edit: str) -> None:
    bed = at("plan approved")
    if edit == "policy":
        path = bed.project / "policies" / "default.yaml"
        path.write_text(path.read_text().replace("diff: 1", "diff: 2"))
    else:
        listed = {**LISTED, "eve": ",".join(NAMESPACES.values())}
        write(bed.project / "policies" / "reviewers", reviewers(bed, listed).encode())
    refused(bed, "run", bed.facts["plan"], code=4, says="policy: expected sha256:")
    key = ("--key", str(bed.key("bob")))
    refused(bed, "approve", bed.facts["plan"], *key, code=4, says="policy")


@pytest.mark.parametrize(
    ("old", "new"),
    [("memory: 512MiB", "memory: 256MiB"), ("isolation:\n", "isolation:\n  tmp_exec: false\n")],
)
def test_a_plan_sealed_with_more_than_the_policy_gives_now_is_refused(
    at: At, old: str, new: str
) -> None:
    bed = at("plan approved")
    path = bed.project / "policies" / "default.yaml"
    path.write_text(path.read_text().replace(old, new))
    says = "policy default: gives less now than plan"
    refused(bed, "run", bed.facts["plan"], code=4, says=says)
    key = ("--key", str(bed.key("bob")))
    refused(bed, "approve", bed.facts["plan"], *key, code=4, says=says)


def test_a_key_that_nobody_listed_cannot_approve(at: At) -> None:
    bed = at("sealed")
    key = ("--key", str(bed.key("eve")))
    refused(bed, "approve", bed.facts["plan"], *key, code=2, says="is nobody's")


def test_a_statement_signed_by_a_key_that_nobody_listed_counts_for_nothing(at: At) -> None:
    bed = at("sealed")
    words = _signed_elsewhere(bed, bed.facts["plan"], "ada", "eve", NAMESPACES["plan"])
    refused(bed, "approve", bed.facts["plan"], *words, code=4, says="is not in the reviewers file")


def test_a_statement_about_another_plan_counts_for_nothing(at: At) -> None:
    bed = at("sealed")
    words = _signed_elsewhere(bed, bed.facts["plan"], "ada", "ada", NAMESPACES["plan"])
    other = seal(bed, "change")
    refused(bed, "approve", other, *words, code=4, says="expected")


def test_an_approval_statement_is_no_rejection(at: At) -> None:
    bed = at("sealed")
    words = _signed_elsewhere(bed, bed.facts["plan"], "ada", "ada", NAMESPACES["plan"])
    refused(bed, "reject", bed.facts["plan"], *words, code=2, says="expected decision reject")


def test_a_plan_past_its_end_neither_takes_an_approval_nor_runs(bed: Bed) -> None:
    plan = seal(bed, "brief")
    time.sleep(0.1)
    key = ("--key", str(bed.key("ada")))
    refused(bed, "approve", plan, *key, code=4, says="expected a decision before")
    refused(bed, "run", plan, code=4, says="expected use before")
    assert "expired" in bed("plan", "list").out


def test_a_rejected_plan_does_not_run_whoever_approves_it(at: At) -> None:
    bed = at("sealed")
    approve(bed, bed.facts["plan"])
    bed("reject", bed.facts["plan"], "--key", str(bed.key("bob")), "--comment", "no")
    refused(bed, "run", bed.facts["plan"], code=4, says="was rejected by bob")
    key = ("--key", str(bed.key("ada")))
    refused(bed, "approve", bed.facts["plan"], *key, code=4, says="was rejected by bob")


def test_without_a_terminal_nothing_is_sealed_asked_or_approved(at: At) -> None:
    bed = at("sealed")
    key = ("--key", str(bed.key("ada")))
    refused(bed, "run", "few", code=4, says="nothing is approved without a terminal")
    refused(bed, "run", "few", *key, code=4, says="nothing is approved without a terminal")
    refused(bed, "approve", bed.facts["plan"], code=4, says="without a terminal")


def test_a_throwaway_policy_is_for_the_demonstration_only(bed: Bed) -> None:
    policy = bed.project / "policies" / "default.yaml"
    policy.write_text(policy.read_text().replace("{ plan: 1", "{ throwaway: true, plan: 1"))
    plan = seal(bed)
    for words in (("run",), ("approve", "--key", str(bed.key("ada")))):
        verb, *rest = words
        refused(bed, verb, plan, *rest, code=4, says="is for the demonstration's throw-away key")


def test_the_person_who_asks_can_be_kept_from_approving(bed: Bed) -> None:
    policy = bed.project / "policies" / "default.yaml"
    policy.write_text(policy.read_text().replace("{ plan: 1", "{ exclude_requester: true, plan: 1"))
    plan = bed("seal", "few", "--requester", "ada", "--json").json()["plan"]
    approve(bed, plan)
    refused(bed, "run", plan, code=4, says="asked for the run")
    approve(bed, plan, "bob")
    run(bed, plan)


# ---- engine, image, stored bytes ----


def test_no_engine_is_an_operators_matter(at: At) -> None:
    bed = at("plan approved")
    done = refused(bed, "run", bed.facts["plan"], code=6, says="engine: none", DOCKER_HOST=NOBODY)
    assert NOBODY in done.err
    refused(bed, "setup", "--check", code=6, says="engine: none", DOCKER_HOST=NOBODY)
    assert run(bed, bed.facts["plan"]), "nothing was spent"


def test_an_image_that_was_never_built_cannot_be_sealed(bed: Bed) -> None:
    path = bed.project / "recipes" / "few.yaml"
    path.write_text(path.read_text().replace("image: python", "image: ruby"))
    refused(bed, "seal", "few", code=6, says="image ruby: is not built on this host")


def test_an_image_that_the_engine_lost_is_missed_before_the_grant_is_spent(bed: Bed) -> None:
    lock = bed.state / "images.lock"
    gone = str(digest_of(b"an image that was removed from the engine"))
    locked = read_lock(lock)
    known = str(locked["python"].image.image_id)
    lock.write_bytes(lock_bytes(locked).replace(known.encode(), gone.encode()))
    plan = seal(bed)
    approve(bed, plan)
    refused(bed, "run", plan, code=6, says="image: the engine does not have it")


def test_an_image_retagged_changes_nothing(at: At) -> None:
    bed = at("plan approved")
    sealed = read_lock(bed.state / "images.lock")["python"].image.image_id
    with _another_image_named(bed.engine, "harness/python:latest") as other:
        assert other != sealed
        ran = only_operation(bed("run", bed.facts["plan"], "--json").json())
        assert ran["observed"]["imageId"] == sealed


@pytest.mark.parametrize("what", ["plan", "seal"])
def test_a_stored_plan_that_was_tampered_with_stops_everything(at: At, what: str) -> None:
    bed = at("plan approved")
    digest = (
        bed.facts["plan"] if what == "plan" else str(bed.entries()[0].body["operations"][0]["seal"])
    )
    _tamper(_blob(bed, digest))
    for words in (("run",), ("approve", "--key", str(bed.key("bob")))):
        verb, *rest = words
        refused(
            bed, verb, bed.facts["plan"], *rest, code=3, says="stored bytes have another digest"
        )


def test_a_layer_that_was_tampered_with_after_the_seal_is_named(at: At) -> None:
    bed = at("plan approved")
    (found,) = (bed.state / "layers").rglob("tool.py")
    found.chmod(0o644)
    found.write_text("import os\nos.system('echo owned')\n")
    refused(bed, "run", bed.facts["plan"], code=3, says="tool.py")


@pytest.mark.parametrize("line", [1, 2])
def test_a_ledger_line_that_was_tampered_with_is_named_first(at: At, line: int) -> None:
    bed = at("ran")
    path = bed.state / "ledger" / "entries.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b'"project":"', b'"project":"f', 1)
    path.write_bytes(b"".join(lines))
    for words in (("ledger", "verify"), ("apply", bed.facts["diff"]), ("runs", "list")):
        done = bed(*words, code=3)
        assert f"ledger line {line}" in done.err
        assert done.out == ""


def test_a_state_folder_that_others_can_read_is_refused(at: At) -> None:
    bed = at("plan approved")
    bed.state.chmod(0o755)
    with contextlib.ExitStack() as back:
        back.callback(bed.state.chmod, 0o700)
        for words in (("run", bed.facts["plan"]), ("ledger", "verify"), ("seal", "few")):
            done = bed(*words, code=6)
            assert "0700" in done.err
            assert "0755" in done.err
    assert bed.verbs() == ["seal.done", "approve.done"]


def test_a_projects_record_that_is_damaged_is_named(at: At) -> None:
    bed = at("sealed")
    (record,) = (bed.state / "projects").glob("*/project.json")
    record.write_bytes(b"junk")
    says = f"projects/{record.parent.name}/project.json: is not as it was written"
    refused(bed, "seal", "few", code=6, says=says)


# ---- the diff gate ----


def test_an_unapproved_diff_does_not_land(at: At) -> None:
    bed = at("ran")
    refused(bed, "apply", bed.facts["diff"], code=4, says="0 of 1; missing 1")


def test_a_diff_lands_once(at: At) -> None:
    bed = at("applied")
    done = refused(bed, "apply", bed.facts["diff"], code=4, says="landed already, 20")
    assert f"hint: `harness undo {bed.facts['diff']}` takes it back" in done.err


def test_a_plans_hash_is_no_diff_and_a_diffs_no_plan(at: At) -> None:
    bed = at("diff approved")
    refused(bed, "apply", bed.facts["plan"], code=2, says="is a plan, expected a diff")
    refused(bed, "run", bed.facts["diff"], code=2, says="no plan of this project")
    refused(bed, "undo", bed.facts["diff"], code=2, says="has not landed in this project")


def test_a_rejected_diff_does_not_land_whoever_approved_it(at: At) -> None:
    bed = at("diff approved")
    bed("reject", bed.facts["diff"], "--key", str(bed.key("bob")))
    refused(bed, "apply", bed.facts["diff"], code=4, says="was rejected by bob")


def test_a_key_for_plans_approves_no_diff(at: At) -> None:
    bed = at("ran")
    key = ("--key", str(bed.key("cy")))
    refused(bed, "approve", bed.facts["diff"], *key, code=4, says="namespace")
    refused(bed, "apply", bed.facts["diff"], code=4, says="0 of 1")


def test_a_failed_runs_diff_can_neither_be_approved_nor_land(bed: Bed) -> None:
    plan = seal(bed, "fail")
    approve(bed, plan)
    diff = run(bed, plan, code=1)
    key = ("--key", str(bed.key("ada")))
    refused(bed, "approve", diff, *key, code=4, says="only changes of a run that passed can land")
    refused(bed, "apply", diff, code=4, says="only changes of a run that passed can land")


def test_a_policy_edited_after_the_run_stops_the_diff(at: At) -> None:
    bed = at("diff approved")
    path = bed.project / "policies" / "default.yaml"
    path.write_text(path.read_text().replace("diff: 1", "diff: 2"))
    refused(bed, "apply", bed.facts["diff"], code=4, says="policy: expected sha256:")


def _edit(root: Path) -> None:
    (root / "README.md").write_text("# Edited meanwhile\n")


def _chmod(root: Path) -> None:
    (root / "README.md").chmod(0o755)


def _take_away(root: Path) -> None:
    (root / "gone" / "old.txt").unlink()


def _add_in_the_way(root: Path) -> None:
    write(root / "deep" / "mine.txt", b"mine\n")


def _add_beside_what_goes(root: Path) -> None:
    write(root / "gone" / "new.txt", b"still needed\n")


def _add_another_case(root: Path) -> None:
    write(root / "DEEP", b"the same name on some systems\n")


@pytest.mark.parametrize(
    ("meddle", "path"),
    [
        (_edit, "README.md"),
        (_chmod, "README.md"),
        (_take_away, "gone/old.txt"),
        (_add_in_the_way, "deep"),
        (_add_beside_what_goes, "gone"),
        (_add_another_case, "deep"),
    ],
)
def test_a_project_that_changed_after_the_approval_is_left_alone(
    at: At, meddle: Callable[[Path], None], path: str
) -> None:
    bed = at("diff approved")
    meddle(bed.project)
    done = refused(bed, "apply", bed.facts["diff"], code=3, says="changed since the snapshot")
    assert f"  {path}: " in done.err


def test_a_folder_that_became_a_link_leads_nowhere(at: At) -> None:
    bed = at("diff approved")
    outside = bed.home / "outside"
    shutil.copytree(bed.project / "gone", outside)
    shutil.rmtree(bed.project / "gone")
    (bed.project / "gone").symlink_to(outside)
    try:
        done = refused(bed, "apply", bed.facts["diff"], code=5, says="may not be written")
        assert "  gone/old.txt: " in done.err
        assert (outside / "old.txt").exists()
    finally:
        shutil.rmtree(outside)


def test_a_stored_changeset_that_was_tampered_with_does_not_land(at: At) -> None:
    bed = at("diff approved")
    _tamper(_blob(bed, bed.facts["diff"]))
    refused(bed, "apply", bed.facts["diff"], code=3, says="stored bytes have another digest")


def test_stored_content_that_was_tampered_with_does_not_land(at: At) -> None:
    """It is noticed while it is staged: the stage came and went, and the grant is not spent."""
    bed = at("diff approved")
    before, entries = bed.tree(), bed.verbs()
    _tamper(_blob(bed, str(digest_of(b"# Changed\n"))))
    done = bed("apply", bed.facts["diff"], code=3)
    assert "stored bytes have another digest" in done.err
    assert (bed.tree(), bed.verbs()) == (before, entries)


def test_more_approvals_are_asked_for_where_a_rule_says_so(bed: Bed) -> None:
    policy = bed.project / "policies" / "default.yaml"
    rules = "reviewers: reviewers, rules: [{ paths: ['*.md'], approvals: 2 }]"
    policy.write_text(policy.read_text().replace("reviewers: reviewers", rules))
    plan = seal(bed)
    approve(bed, plan)
    diff = run(bed, plan)
    approve(bed, diff)
    refused(bed, "apply", diff, code=4, says="1 of 2: ada; missing 1")
    approve(bed, diff, "bob")
    bed("apply", diff)


def test_a_name_that_only_case_tells_apart_never_lands(bed: Bed) -> None:
    write(bed.project / "tool.py", b"open('readme.md', 'w').write('x')\n")
    plan = seal(bed)
    approve(bed, plan)
    diff = run(bed, plan)
    with untouched(bed):
        shown = bed("diff", bed.facts["run"], "--stat").out
    assert "cannot land: readme.md " in shown
    key = ("--key", str(bed.key("ada")))
    done = refused(bed, "approve", diff, *key, code=5, says="holds paths that may not land")
    assert "readme.md" in done.err
    refused(bed, "apply", diff, code=5, says="holds paths that may not land")


def test_what_lies_where_git_does_never_comes_back(bed: Bed) -> None:
    (bed.project / "recipes" / "git.yaml").write_text(recipe("x", more="writable: ['**']\n"))
    write(
        bed.project / "tool.py",
        b"import os\nos.makedirs('.git/hooks')\nopen('.git/hooks/pre-commit', 'w').write('x')\n"
        b"open('fine.txt', 'w').write('x')\n",
    )
    plan = seal(bed, "git")
    approve(bed, plan)
    run(bed, plan)
    body = bed("diff", bed.facts["run"], "--json").json()
    landing = {item["path"] for item in body["changes"]}
    stopped = {item["path"] for item in body["obstacles"]}
    assert "fine.txt" in landing
    assert not {path for path in landing - stopped if path.startswith(".git")}


# ---- means ----


def _signed_elsewhere(
    bed: Bed, digest: str, reviewer: str, key: str, namespace: str
) -> tuple[str, ...]:
    """Have a statement written, sign it with stock tools, and return the words to bring it back."""
    statement = bed.home / f"statement-{time.monotonic_ns()}"
    bed("approve", digest, "--write-statement", str(statement), "--reviewer", reviewer)
    subprocess.run(
        ["ssh-keygen", "-q", "-Y", "sign", "-f", bed.key(key), "-n", namespace, statement],
        check=True,
        capture_output=True,
    )
    return ("--statement", str(statement), "--signature", f"{statement}.sig")


def _blob(bed: Bed, digest: str) -> Path:
    digits = parse_digest(digest).removeprefix("sha256:")
    return bed.state / "objects" / digits[:2] / digits[2:]


def _tamper(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(data)


@contextlib.contextmanager
def _another_image_named(engine: str, name: str) -> Iterator[str]:
    """Let a tag name another image for the block; what it named before gets it back."""
    client = docker.APIClient(base_url=engine, version="auto")
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    earlier = [image["Id"] for image in client.images(name=name)]
    repository, _, tag = name.rpartition(":")
    try:
        client.import_image_from_data(archive.getvalue(), repository=repository, tag=tag)
        (other,) = client.images(name=name)
        yield str(other["Id"])
    finally:
        client.remove_image(name, force=True)
        for image in earlier:
            client.tag(image, repository, tag)
        client.close()
