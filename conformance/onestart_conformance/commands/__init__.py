"""The commands of the conformance suite."""
