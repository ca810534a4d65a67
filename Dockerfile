# The controller's own image: the harness with git and ssh-keygen. It holds no engine and no worker;
# it uses the host's engine. How to start it: docs/how-to/who-may-run-it.md.
#
#   docker build --tag sealed-harness .
#
# BASE is any image with Python 3.11 or newer, its pip and its venv; git and openssh-client are
# added with apt-get where they are missing.
# PACKAGES is what pip installs. Without a network, lay the wheels of the harness and of what it
# needs into wheels/ and give `--no-index --find-links /src/wheels sealed-harness`.
ARG BASE=python:3.11-slim

FROM ${BASE} AS build
ARG PACKAGES=/src
COPY . /src
RUN python3 -m venv --without-pip /opt/harness \
 && python3 -m pip --python /opt/harness/bin/python install \
      --no-cache-dir --disable-pip-version-check --root-user-action ignore ${PACKAGES}

FROM ${BASE}
RUN { command -v git && command -v ssh-keygen; } >/dev/null \
 || { apt-get update -qq \
      && apt-get install -y -qq --no-install-recommends git openssh-client \
      && rm -rf /var/lib/apt/lists/*; }
COPY --from=build /opt/harness /opt/harness
ENV PATH=/opt/harness/bin:$PATH

# Nobody in particular: whoever starts it says who they are with --user, so that results are theirs.
USER 65532:65532
ENTRYPOINT ["harness"]
