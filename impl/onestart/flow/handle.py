"""The handle: what a flow's body does things with. Each call declares a step at once; awaiting it carries it out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onestart.flow.definition import Flow
from onestart.flow.errors import BadFlowError
from onestart.flow.scope import Scope
from onestart.flow.steps import Dispatch, Effect, Hook, HookBody, Human, Step


class Memory:
    """What a flow has learned."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def learn(self, finding: Any, **options: Any) -> Step:
        """Keep a finding."""
        return Effect(self._scope, "memory", {"learn": finding, **options})


class Handle:
    """Of one flow, or of a child. Every method returns a step to be awaited; its result is JSON.

    All of them raise RefusedError once the flow has been refused, BadFlowError for what is not JSON, and those that a
    worker carries out UnknownKindError if there is none. Awaiting raises StepFailedError if the effect fails.
    """

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self.memory = Memory(scope)

    @property
    def root(self) -> str:
        """The root's id."""
        return self._scope.root.id

    def run(self, argv: Sequence[str], *, cwd: str | None = None, env: dict[str, str] | None = None) -> Step:
        """Run a program; the result has its `status`, `stdout` and `stderr`. Another status than 0 fails the step."""
        words = [] if isinstance(argv, str) else list(argv)
        if not words or not all(map(is_text, words)):
            raise BadFlowError(f"f.run takes a list of texts with a program first, not {argv!r}")
        return Effect(self._scope, "run", {"argv": words, "cwd": cwd, "env": env})

    def llm(self, prompt: Any, **options: Any) -> Step:
        """Ask a language model."""
        return Effect(self._scope, "llm", {"prompt": prompt, **options})

    def agent(self, task: Any, **options: Any) -> Step:
        """Have an agent do a task."""
        return Effect(self._scope, "agent", {"task": task, **options})

    def helper(self, name: str, **arguments: Any) -> Step:
        """Call a helper by name."""
        return Effect(self._scope, "helper", {"name": name, "arguments": arguments})

    def mcp(self, server: str, tool: str, **arguments: Any) -> Step:
        """Call a tool of an MCP server."""
        return Effect(self._scope, "mcp", {"server": server, "tool": tool, "arguments": arguments})

    def plugin(self, name: str, **arguments: Any) -> Step:
        """Call a plugin by name."""
        return Effect(self._scope, "plugin", {"name": name, "arguments": arguments})

    def on(self, event: str, **options: Any) -> Step:
        """Subscribe to an event."""
        return Effect(self._scope, "on", {"event": event, **options})

    def human(self, question: str, *, to: str = "anybody") -> Step:
        """Ask a person. The flow parks until there is an answer to this very question."""
        if not is_text(question) or not is_text(to):
            raise BadFlowError("f.human takes a question and a recipient, both texts that are not empty")
        return Human(self._scope, "human", {"question": question, "to": to})

    def hook(self, name: str, body: HookBody, input: Any = None) -> Step:  # noqa: A002
        """Have `body(f, input)` come to a verdict: `pass`, `fail` or `noop` (also None). What it raises is `fail`.

        Its own steps are part of it: replayed, a hook is one step.
        """
        if not callable(body):
            raise BadFlowError("f.hook takes an async function of a handle and the input")
        return Hook(self._scope, {"hook": name, "input": input}, body, self)

    def dispatch(self, flow: Flow, *arguments: Any) -> Step:
        """Run a child flow; its steps are recorded under this one's id."""
        if not isinstance(flow, Flow):
            raise BadFlowError(f"f.dispatch takes a flow, not {type(flow).__name__}; declare it with @flow")

        async def run(scope: Scope) -> Any:
            return await flow.body(Handle(scope), *arguments)

        return Dispatch(self._scope, {"flow": flow.name, "arguments": list(arguments)}, run)


def is_text(value: object) -> bool:
    """Whether it is a text, and not an empty one."""
    return isinstance(value, str) and value != ""
