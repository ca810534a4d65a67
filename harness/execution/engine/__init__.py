"""The engine port and its one adapter, for workers and for image builds.

Knows: what we need of an engine, and how Docker does it. Refuses: to run or judge anything.
Flow: a spec in our words -> the engine's request -> what the engine says, in our words.
"""
