"""The starter set that `harness init` writes: a project that can be sealed and run as it is.

Every file says in comments what may be changed in it; its first line lets an editor complete and
check it by the schema beside it, offline. Nothing here is read again: once written, the files are
the project's own.
"""

from __future__ import annotations

from collections.abc import Mapping

from harness.errors import InputError
from harness.governance.reviewers import parse_reviewers
from harness.model.approval import NAMESPACES
from harness.model.files.file_schemas import schema_bytes
from harness.model.files.project_file import PROJECT_FILE, read_project_file

_SCHEMA_FOLDER = ".harness/schemas"
_PUBLISHED = ("project", "recipe", "policy")

_PROJECT = """\
# yaml-language-server: $schema=.harness/schemas/project-v1.json
# Marks this folder as a project of Sealed Harness.
version: 1
name: {name}

# recipes: recipes      # folder of the recipes
# policies: policies    # folder of the policies
"""

_TEST = """\
# yaml-language-server: $schema=../.harness/schemas/recipe-v1.json
# Runs the tests in a sealed, offline worker:   harness run test
version: 1
kind: test
description: Run the project's tests.
image: python # Python 3.11 with pytest and ruff; `harness image list` shows all

steps:
  # Program and arguments, each an item of its own. No shell reads them.
  - name: tests
    run:
      - python3
      - -m
      - pytest
      - -p
      - no:cacheprovider
      - --junitxml=reports/junit.xml
      - ${param.paths}
    # timeout: 5m                # ends this step, and the run with it
    # allowed_exit_codes: [0, 5] # pytest says 5 when it found no tests

# One run for each value, all in one plan; ${matrix.part} stands for it in steps and env:
# matrix:
#   part: [unit, integration]

# Recipes that must pass first; they enter the plan by themselves:
# needs: [lint]

parameters:
  paths: # harness run test --param paths=tests/unit
    description: What to test.
    default: .
    pattern: "[A-Za-z0-9_./]+"

inputs:
  # Without `include` everything enters but .git, what git ignores, and what looks like a secret.
  exclude: ["*.log", /dist/, /build/]

outputs:
  # The counts in the record come from here; without it a run says only how it ended.
  - name: results
    path: reports/junit.xml
    report: junit
    max_size: 16MiB # a larger file is not kept, and the run fails

env:
  PYTHONPATH: src # for projects that keep their package there

limits: # each at most what the policy allows
  wall: 10m
  memory: 1GiB
"""

_FORMAT = """\
# yaml-language-server: $schema=../.harness/schemas/recipe-v1.json
# Formats the sources; the change waits in quarantine until its hash is approved:
#   harness run format;  harness diff RUN;  harness approve HASH;  harness apply HASH
version: 1
kind: build
description: Format the Python sources with ruff.
image: python

steps:
  - name: format
    run: [ruff, format, --no-cache, .]

# What may come back, as gitignore patterns. All else a run changes is listed and left behind.
writable: ["*.py", "*.pyi"]

limits:
  wall: 2m
"""

_POLICY = """\
# yaml-language-server: $schema=../.harness/schemas/policy-v1.json
# What a worker gets (part of every seal), and who must sign what (part of every plan).
# An edit here changes the digest: plans that wait for approval must be sealed again.
version: 1

isolation: # never any network, whatever stands here
  limits:
    cpus: 2
    memory: 2GiB
    wall: 10m
    output: 64MiB # what a run prints
    artifact: 64MiB # any one output that is kept
  tmp_exec: true # programs in /tmp may be executed
  allow_scripts: false # `sh -c ...`, `python -c ...` and the like are refused

approval:
  plan: 1 # persons who must approve before anything runs
  diff: 1 # persons who must approve before a change lands
  valid_for: 24h
  reviewers: reviewers # the file beside this one
  exclude_requester: false # true: who asks for a run can't approve it

  # More approvals for parts of the tree:
  # rules:
  #   - paths: [src/auth/**, /pyproject.toml]
  #     approvals: 2
"""

_REVIEWERS = """\
# Who may approve: OpenSSH's allowed_signers format, see ssh-keygen(1). One key a line:
#   NAME namespaces="{namespaces}" KEY-TYPE KEY [COMMENT]
# A person with two keys has two lines with the same name. The key is the .pub file's content.
"""


def starter_files(name: str, principal: str, public_key: str) -> Mapping[str, bytes]:
    """Return the files of the starter set by their path below the project's root.

    Args:
        name: the project's name.
        principal: how the first reviewer is called, as `ada@example.org`.
        public_key: the content of the reviewer's `.pub` file; empty: the reviewers file then
            holds only its explanation.

    Raises:
        InputError: the name, the principal or the key can't stand in these files.
    """
    namespaces = ",".join(NAMESPACES.values())
    reviewers = _REVIEWERS.format(namespaces=namespaces)
    if public_key:
        if len(public_key.strip().splitlines()) != 1:
            raise InputError("public key: expected one line, as in a .pub file")
        reviewers += f'{principal} namespaces="{namespaces}" {public_key.strip()}\n'
        parse_reviewers(reviewers.encode())
    project = _PROJECT.format(name=name).encode()
    if read_project_file(project, PROJECT_FILE).name != name:
        raise InputError(f"project name: {name!r:.80} can't stand in {PROJECT_FILE} as it is")
    return {
        PROJECT_FILE: project,
        "recipes/test.yaml": _TEST.encode(),
        "recipes/format.yaml": _FORMAT.encode(),
        "policies/default.yaml": _POLICY.encode(),
        "policies/reviewers": reviewers.encode(),
        **schema_files(),
    }


def schema_files() -> Mapping[str, bytes]:
    """Return the schemas that the first line of a recipe, policy or project file names."""
    return {f"{_SCHEMA_FOLDER}/{kind}-v1.json": schema_bytes(kind) for kind in _PUBLISHED}
