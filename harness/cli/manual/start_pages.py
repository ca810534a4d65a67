"""Pages of what comes first, and of what stands around the main job."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.manual.page import ENVIRONMENT, FILES, Page

_ENGINE = ("DOCKER_HOST", "HARNESS_STATE")
_LOCK = ("~/.local/state/sealed-harness/images.lock",)

START_PAGES: Mapping[str, Page] = {
    "": Page(
        exits={
            0: "Passed or done, also when a diff waits.",
            1: "The recipe failed: an exit code, a signal, a timeout or a limit.",
            3: "Bytes are not what was promised.",
            4: "Not permitted, or not yet.",
            5: "Something tried to leave its box.",
            7: "Something from outside could not be had.",
            70: "A fault of harness itself: please report it.",
        },
        environment=tuple(ENVIRONMENT),
        files=tuple(FILES),
        examples=(
            (
                "Begin a project, with its first reviewer",
                "harness init --key KEY.pub --reviewer me",
            ),
            ("Make a plan, and have it approved and run", "harness seal format"),
        ),
        see=("setup", "init", "seal", "approve", "run", "diff", "apply", "help"),
    ),
    "setup": Page(
        exits={
            6: "No engine answers or can limit a worker, or a step is needed that was not agreed "
            "to or not possible.",
            7: "A package could not be had.",
        },
        environment=_ENGINE,
        files=("~/.local/state/sealed-harness/",),
        examples=(
            ("See whether an engine answers", "harness setup --check"),
            ("Install and start what is missing, without questions", "harness setup --yes"),
        ),
        see=("image build", "demo"),
    ),
    "init": Page(
        arguments={"FOLDER": "The project's folder; made when missing.  [default: here]"},
        files=("harness.yaml", "recipes/NAME.yaml", "policies/NAME.yaml"),
        examples=(
            (
                "Begin a project, with its first reviewer",
                "harness init --key KEY.pub --reviewer me",
            ),
        ),
        see=("recipe check", "seal"),
    ),
    "demo": Page(
        exits={3: "What was shown is not what should be.", 7: "Something could not be had."},
        environment=_ENGINE,
        files=("~/.local/state/sealed-harness/",),
        examples=(("Do the whole job once, without questions", "harness demo --yes"),),
        see=("setup", "init"),
    ),
    "image": Page(
        environment=_ENGINE,
        files=_LOCK,
        examples=(("See which images recipes can name", "harness image list"),),
        see=("image build", "image add", "image list", "image verify"),
    ),
    "image build": Page(
        arguments={"NAME": "A folder of the image definitions, as `python`."},
        exits={7: "A package could not be had, or is not the one that was pinned."},
        environment=_ENGINE,
        files=_LOCK,
        examples=(
            ("Build the image of the starter recipes", "harness image build python"),
            (
                "Build it from the packages that Debian has now, and see what differs",
                "harness image build python --fresh",
            ),
        ),
        see=("image add", "image verify", "image list"),
    ),
    "image add": Page(
        arguments={
            "NAME": "What recipes will call it; no name of a definition.",
            "SOURCE": "An archive, an image of the engine, or one of a registry.",
        },
        exits={
            3: "A digest is not the one that was named, or a locked tag was moved.",
            7: "The registry does not answer, refuses, or has no such image.",
        },
        environment=_ENGINE,
        files=(*_LOCK, "~/.docker/config.json"),
        examples=(
            ("Add an image that the engine has", "harness image add node node:20"),
            ("Add one of a registry", "harness image add node registry.example:5000/node:20"),
            (
                "Add one of several in an archive",
                "harness image add app ./all.tar --image app:2",
            ),
        ),
        see=("image verify", "image list"),
    ),
    "image list": Page(
        exits={3: "images.lock is damaged."},
        environment=_ENGINE,
        files=_LOCK,
        examples=(("List names, content ids and sizes", "harness image list"),),
        see=("image build", "image verify"),
    ),
    "image verify": Page(
        arguments={"NAME": "Name of a locked image."},
        exits={
            3: "Some bytes are not those of the locked id, or a tag was moved.",
            7: "The registry does not answer.",
        },
        environment=_ENGINE,
        files=_LOCK,
        examples=(
            ("Hash all that the engine holds of an image", "harness image verify python"),
            (
                "Ask its registry whether the tag was moved",
                "harness image verify node --source",
            ),
        ),
        see=("image build", "image add", "image list"),
    ),
    "schema": Page(
        arguments={
            "NAME": "A kind of file (recipe, policy, project, host), a command as `runs list`, "
            "or `error`.",
        },
        examples=(
            ("Let an editor check recipes", "harness schema recipe > recipe.json"),
            ("See what a command prints", "harness schema runs list"),
        ),
        see=("recipe check",),
    ),
    "completion": Page(
        arguments={"{bash|zsh|fish}": "Your shell: bash 4.4 or newer, zsh or fish."},
        examples=(
            ("For this bash", 'eval "$(harness completion bash)"'),
            (
                "For every fish",
                "harness completion fish > ~/.config/fish/completions/harness.fish",
            ),
        ),
        see=("help",),
    ),
    "help": Page(
        arguments={"COMMAND": "The command's words, as `runs list`."},
        examples=(("Read about a command", "harness help runs list"),),
        see=("schema",),
    ),
}
