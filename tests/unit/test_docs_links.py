"""Every page is in the index, and no relative link of any page leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def prose(page: Path) -> str:
    return _FENCE.sub("", page.read_text("utf-8"))


def links(page: Path) -> list[tuple[Path, str]]:
    found = [link for link in _LINK.findall(prose(page)) if "://" not in link]
    parts = [link.partition("#") for link in found if not link.startswith("mailto:")]
    return [((page.parent / path).resolve() if path else page, part) for path, _, part in parts]


def anchors(page: Path) -> set[str]:
    """Return the names GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}


def test_every_page_is_in_the_index() -> None:
    listed = {path for path, _ in links(DOCS / "README.md")}
    missing = {page for page in DOCS.rglob("*.md") if page.name != "README.md"} - listed
    assert missing == set()


def test_every_relative_link_leads_somewhere() -> None:
    followed = [(page, path, part) for page in pages() for path, part in links(page)]
    broken = [
        f"{page.relative_to(ROOT)}: {path.name}#{part}"
        for page, path, part in followed
        if not path.exists() or (part and part not in anchors(path))
    ]
    assert broken == []
    assert len(followed) > 60
