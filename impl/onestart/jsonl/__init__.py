"""The ledger as files of JSON lines: readable with any editor, appended to and never changed."""

from onestart.jsonl.files import Files, LocalFiles
from onestart.jsonl.ledger import JsonlLedger

__all__ = ["Files", "JsonlLedger", "LocalFiles"]
