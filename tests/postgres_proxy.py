"""Between a client and a PostgreSQL server: a pooler with a session for each transaction, which can lose answers."""

from __future__ import annotations

import selectors
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

Cut: TypeAlias = Literal["before", "at once", "answered"]

_READY = ord("Z")
_COMMIT = b"\0COMMIT\0"  # alone in a message: of a transaction that has written something
_MOST = 1 << 16


class Session:
    """A connection to the server, kept when its client has gone. served: how many transactions it has had."""

    def __init__(self, path: Path, startup: bytes) -> None:
        self.served = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self._rest = b""
        self.greeting = b""
        try:
            self.socket.connect(str(path))
            self.socket.sendall(startup)
            while not self.ended(answer := self.socket.recv(_MOST)):
                self.greeting += answer
        except BaseException:
            self.socket.close()
            raise
        self.greeting += answer

    def ended(self, answer: bytes) -> bool:
        """Whether this part of the server's answer ends with its being ready for another transaction."""
        if not answer:
            raise ConnectionError("the server has hung up")
        self._rest += answer
        idle = False
        while len(self._rest) >= 5 and len(self._rest) > (size := int.from_bytes(self._rest[1:5])):
            idle = self._rest[0] == _READY and self._rest[5:6] == b"I"
            self._rest = self._rest[size + 1 :]
        return idle


class Proxy:
    """A pooler of so many sessions; one client at a time.

    cut: what happens at the COMMIT that is so many away: the connection ends before it is passed on, as soon as it is,
    or when the server has answered it. gone: nobody is let in any more after that. then: is done before
    the client notices.
    """

    def __init__(self, server: Path, folder: Path, sessions: int) -> None:
        self._server, self._size = server, sessions
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / server.name))
        self._listening.listen()
        self._away, self._cut, self._gone = 0, "", False
        self._then: Callable[[], object] = lambda: None
        self.sessions: list[Session] = []
        self._clients: list[socket.socket] = []
        self.conninfo = f"postgresql://postgres@/postgres?host={folder}"

    def cut(self, away: int, when: Cut, *, gone: bool = False, then: Callable[[], object] = lambda: None) -> None:
        self._away, self._cut, self._gone, self._then = away, when, gone, then

    def serve(self) -> None:
        """Until it is closed."""
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self._clients = [client]
                with client, suppress(OSError):
                    self._relay(client)
        self._listening.close()
        for session in self.sessions:
            session.socket.close()

    def close(self) -> None:
        """Let whoever serves come to its end."""
        for end in (self._listening, *self._clients):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def _relay(self, client: socket.socket) -> None:
        if self._gone and not self._cut:
            return
        startup = client.recv(_MOST)
        while len(self.sessions) < self._size:
            self.sessions.append(Session(self._server, startup))
        client.sendall(self.sessions[0].greeting)
        while self._transaction(client, self.sessions[0]):
            self.sessions = [*self.sessions[1:], self.sessions[0]]

    def _transaction(self, client: socket.socket, session: Session) -> bool:
        """Pass on what is said until the server is ready for another one; False if the client has gone before."""
        deaf = False
        with selectors.DefaultSelector() as both:
            both.register(client, selectors.EVENT_READ)
            both.register(session.socket, selectors.EVENT_READ)
            while True:
                for key, _ in both.select():
                    if key.fileobj is client:
                        said = client.recv(_MOST)
                        if not said or said[:1] == b"X":
                            return False
                        when = self._cuts(said)
                        if when != "before":
                            session.socket.sendall(said)
                        deaf = deaf or when == "answered"
                        if when in ("before", "at once"):
                            return self._lost(session)
                        continue
                    answer = session.socket.recv(_MOST)
                    ended = session.ended(answer)
                    if deaf:
                        if ended:
                            return self._lost(session)
                        continue
                    client.sendall(answer)
                    if ended:
                        session.served += 1
                        return True

    def _cuts(self, said: bytes) -> str:
        """What happens now, nothing as a rule."""
        if not self._cut or _COMMIT not in said:
            return ""
        self._away -= 1
        if self._away:
            return ""
        when, self._cut = self._cut, ""
        return when

    def _lost(self, session: Session) -> bool:
        """The connection of client and server is lost."""
        self.sessions.remove(session)
        session.socket.close()
        self._then()
        return False


@contextmanager
def proxy(server: Path, sessions: int = 1) -> Iterator[Proxy]:
    """Up for a while, in a thread."""
    folder = Path(tempfile.mkdtemp(prefix="onestart-proxy-"))
    between = Proxy(server, folder, sessions)
    thread = threading.Thread(target=between.serve, daemon=True)
    thread.start()
    try:
        yield between
    finally:
        between.close()
        thread.join(10)
        shutil.rmtree(folder)
