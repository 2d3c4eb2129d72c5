"""The ledger in PostgreSQL, shared by many machines. Needs the extra `postgres`."""

try:
    import psycopg as _psycopg
except ImportError as error:
    raise ModuleNotFoundError(
        f"PostgreSQL needs psycopg ({error}): install it with  pip install 'onestart[postgres]'", name="psycopg"
    ) from None

from onestart.sql.postgres.ledger import PostgresLedger, reading
from onestart.sql.postgres.server import Limits

__all__ = ["Limits", "PostgresLedger", "reading"]

del _psycopg
