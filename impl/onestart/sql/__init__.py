"""Ledgers in databases: rows that hold the same checksummed lines as files do, found by kind and key."""
