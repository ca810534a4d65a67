"""The command line: arguments, rendering, exit codes.

Knows: how a person asks and reads. Refuses: to decide anything.
Flow: parse, call one flow, render its result or its error.
"""
