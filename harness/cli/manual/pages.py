"""Every page, by the command's words."""

from __future__ import annotations

from collections.abc import Mapping

from harness.cli.manual.job_pages import JOB_PAGES
from harness.cli.manual.keep_pages import KEEP_PAGES
from harness.cli.manual.look_pages import LOOK_PAGES
from harness.cli.manual.page import Page
from harness.cli.manual.start_pages import START_PAGES

PAGES: Mapping[str, Page] = {**START_PAGES, **JOB_PAGES, **LOOK_PAGES, **KEEP_PAGES}
