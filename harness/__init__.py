"""Sealed Harness: sealed, approved, offline runs of recipes over real code.

Knows: the version. Refuses: importing anything heavy, so that start-up stays cheap.
Flow: `python -m harness` and the `harness` command start in `harness.__main__`.
"""

__version__ = "0.1.0"
