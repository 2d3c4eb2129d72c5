"""The library's own sub-commands, one module each."""
