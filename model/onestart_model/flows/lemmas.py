"""Supporting invariants: together with the promises they are inductive, so the proof holds for any program."""
