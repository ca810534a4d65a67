"""Writes `reference/records.md`: the members of every stored record, read out of the code.

Run `make reference` after a change of a record; a test fails until it was done. Names and types are
those of the code that writes the bytes; meanings are the `Attributes` of its class.
"""  # noqa: INP001 - a script beside the pages it writes, not a package

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).resolve().parent
HARNESS = DOCS.parent / "harness"
PAGE = DOCS / "reference" / "records.md"

CLASSES = (
    ("model/entry.py", "Entry"),
    ("model/plan.py", "Plan"),
    ("model/plan.py", "PlannedOperation"),
    ("model/plan.py", "Disclosure"),
    ("model/plan.py", "DisclosedOperation"),
    ("model/seal.py", "Seal"),
    ("model/image.py", "Image"),
    ("model/policy.py", "ApprovalPolicy"),
    ("model/policy.py", "PathRule"),
    ("model/approval.py", "Approval"),
    ("model/run_record.py", "RunRecord"),
    ("model/outcome.py", "Outcome"),
    ("model/outcome.py", "StepReport"),
    ("model/run_record.py", "StreamRecord"),
    ("model/run_record.py", "Artifact"),
    ("model/changeset.py", "Changeset"),
    ("model/changeset.py", "Change"),
    ("model/changeset.py", "ByProduct"),
    ("model/quarantine_record.py", "QuarantineRecord"),
    ("model/backup.py", "Manifest"),
    ("model/backup.py", "BackupFile"),
    ("model/backup.py", "Objects"),
)
"""Whose attributes are the members, in the order of the page."""

KEPT = {
    "added-image": ("hashed only: the definition of an added image", "image add"),
    "apply-journal": ("`projects/ID/apply/journal.json` while an apply goes on", "apply"),
    "approval-policy": ("object", "seal"),
    "backup": ("`manifest.json` of a backup", "state backup"),
    "by-products": ("object", "run, undo"),
    "cached-base": ("derived: made again when it is lost", "image build"),
    "changeset": ("object", "run, undo"),
    "entry": ("a line of `ledger/entries.jsonl`", "every command that changes something"),
    "folder": ("object", "seal, run"),
    "frontier": ("derived: `ledger/frontier`", "every append"),
    "image-base": ("hashed only: the key of a cached base", "image build"),
    "image-definition": ("hashed only: `definition` of an image", "image build"),
    "images": ("`images.lock`", "image build, image add"),
    "init-binary": ("hashed only: the key of a built init", "image build, image add"),
    "layer": ("derived: in `layers/`, made again when it is lost", "run"),
    "minimal-system": ("hashed only: the key of a cached base", "image build"),
    "plan": ("object", "seal"),
    "project": (
        "`projects/ID/project.json`",
        "the first command in a project, project add, project move",
    ),
    "quarantine": ("object", "run, undo"),
    "restored": ("a mark until the ledger has the restore", "state restore"),
    "run-record": ("object", "run"),
    "seal": ("object", "seal"),
    "setup": ("`setup.json`: what `setup --undo` takes back", "setup"),
    "Statement": ("object, and its signature beside it", "approve, reject"),
}
"""Where each kind lies, and which commands write it."""

_KIND = re.compile(
    r'^[A-Z_0-9]+ = "(harness/[a-z-]+/v\d+|https://in-toto\.io/[^"]+)"$', re.MULTILINE
)
WRITTEN = {
    ("ApprovalPolicy", "reviewers_digest"): "reviewers",
    ("DisclosedOperation", "expected_from"): "expectedFromRuns",
    ("ByProduct", "kind"): "kind",
    ("Outcome", "kind"): "kind",
}
"""Members whose name in JSON does not follow from the attribute's."""

_BLOCK = re.compile(r"(<!-- (kinds|members|bodies) -->\n).*?(<!-- end -->)", re.DOTALL)


def render() -> bytes:
    """Return the page as the code has it now."""
    made = {"kinds": _kinds, "members": _members, "bodies": _bodies}
    text = PAGE.read_text("utf-8")
    return _BLOCK.sub(lambda found: found[1] + made[found[2]]() + found[3], text).encode()


def kinds() -> dict[str, str]:
    """Return every `_type` that the code names, and the module that does."""
    found: dict[str, str] = {}
    for path in sorted(HARNESS.rglob("*.py")):
        for kind in _KIND.findall(path.read_text("utf-8")):
            found[kind] = str(path.relative_to(HARNESS.parent))
    return found


def _kinds() -> str:
    rows = ["| `_type` | where it lies | written by | defined in |", "|---|---|---|---|"]
    for kind, module in sorted(kinds().items()):
        place, commands = KEPT[kind.split("/")[-2]]
        rows.append(f"| `{kind}` | {place} | {commands} | `{module}` |")
    return "\n".join(rows) + "\n"


def _members() -> str:
    return "\n".join(_table(module, name) for module, name in CLASSES)


def _table(module: str, name: str) -> str:
    tree = ast.parse((HARNESS / module).read_text("utf-8"))
    (node,) = (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == name)
    meanings = _meanings(ast.get_docstring(node) or "")
    rows = [f"### {name}", "", "| member | type in the code | meaning |", "|---|---|---|"]
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            written = ast.unparse(item.annotation).replace("|", "\\|")
            field = item.target.id
            meaning = meanings.get(field, "").replace("|", "\\|")
            member = WRITTEN.get((name, field), _camel(field))
            rows.append(f"| `{member}` | `{written}` | {meaning} |")
    return "\n".join(rows) + "\n"


def _meanings(docstring: str) -> dict[str, str]:
    listed = docstring.partition("Attributes:\n")[2]
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", listed, re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return "_type" if name == "kind" else head + "".join(word.title() for word in rest)


def _bodies() -> str:
    rows = ["| verb | phase | members written as one literal | in |", "|---|---|---|---|"]
    return "\n".join([*rows, *sorted(set(_appends()))]) + "\n"


def _appends() -> Iterator[str]:
    for path in sorted((HARNESS / "flows").glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not isinstance(node, ast.Call) or len(node.args) < 2:  # noqa: PLR2004 - verb, phase
                continue
            verb, phase = node.args[:2]
            body = next((k.value for k in node.keywords if k.arg == "body"), None)
            if isinstance(verb, ast.Constant) and isinstance(phase, ast.Constant) and body:
                words = f"| `{verb.value!s}` | `{phase.value!s}` |"
                keys = body.keys if isinstance(body, ast.Dict) else []
                names = [f"`{k.value!s}`" for k in keys if isinstance(k, ast.Constant)]
                members = ", ".join(names) or f"those of `{ast.unparse(body)}`"
                yield f"{words} {members} | `{path.name}` |"


if __name__ == "__main__":
    PAGE.write_bytes(render())
