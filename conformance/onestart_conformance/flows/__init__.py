"""Conformance of flows: programs in every order of results, crashed and resumed, beside a sequential reference."""
