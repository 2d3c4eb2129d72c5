"""What is found out, and how it is shown: verdicts, claims, and the screen. Proofs and conformance both report so."""
