"""onestart: one idempotency key, at most one start.

The library itself is not here yet; the command line, with the evidence for its rules, is.
"""
