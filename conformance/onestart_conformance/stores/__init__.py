"""Stores by themselves: the axioms of the model, crashes at every operation, kills of real processes."""
