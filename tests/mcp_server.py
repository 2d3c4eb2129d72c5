"""An MCP server for tests, started as a program. Its argument: a file to which each start, call and end adds a line."""

import os
import sys
from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("tested")


def note(line: str) -> None:
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{line}\n")


@server.tool()
def add(a: int, b: int) -> int:
    """The sum."""
    note(f"add {a} {b}")
    return a + b


@server.tool()
def fail(why: str) -> str:
    """An error of the tool's own."""
    note("fail")
    raise ToolError(why)


@server.tool()
def die() -> str:
    """The server is gone in the middle of a call."""
    note("die")
    os._exit(1)


if __name__ == "__main__":
    note("started")
    server.run("stdio")
    note("ended")
