"""Who may approve which digest, once, until when; thresholds and reviewers are data.

Knows: SSHSIG, the reviewers file, statements, k-of-n, grants. Refuses: clock, network.
Flow: statement and signature bytes in, `Approved[...]` out, or one error that says what is missing.
"""
