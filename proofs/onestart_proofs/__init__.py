"""onestart_proofs: exhausts a model's reachable states, and proves its invariants for all sizes.

Read `ground`, `frontier` and `search` for the enumeration, `smt` and `induction` for the proofs; `evidence` puts both
together for the summary.
"""
