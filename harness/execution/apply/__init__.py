"""Apply: one approved changeset lands in the project, whole or not at all.

Knows: a project's tree through held handles, the stage, the journal. Refuses: to decide who may.
Flow: check -> stage -> (ledger intent) -> commit -> (ledger done) -> finish; recover after a crash.
"""
