"""Supporting invariants."""
