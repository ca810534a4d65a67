"""From a sealed plan to a quarantined, then applied, changeset.

Knows: snapshots, workers, quarantine, apply, images. Refuses: anything about evidence.
Flow: snapshot -> worker -> quarantine -> apply.
"""
