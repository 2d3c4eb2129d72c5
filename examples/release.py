"""A release as a flow: checks side by side, notes by a model, a hook, uploads by child flows, and a person's word.

    onestart flow run release.py:release release-7 '"1.7.0"'

Everything that it does outside is a line in the file `effects`.
"""

import asyncio
from pathlib import Path

from onestart.flow import NEVER, Call, Handle, Known, Worker, flow


async def write_notes(call: Call) -> str:
    """Stands for a language model."""
    effect(f"wrote {call.spec['prompt']}")
    return f"{call.spec['prompt']}: nothing is lost any more."


async def upload(call: Call) -> str:
    """Stands for a server, which takes its time to answer as long as there is a file `slow`."""
    part = call.spec["arguments"]["part"]
    effect(f"uploaded {part} {call.key}")
    while Path("slow").exists():
        await asyncio.sleep(0.02)
    return f"{part} is up"


async def find_upload(call: Call) -> object:
    """The server knows each request by its key."""
    part = call.spec["arguments"]["part"]
    return Known(f"{part} is up") if f"uploaded {part} {call.key}" in Path("effects").read_text() else NEVER


def effect(line: str) -> None:
    """Something that can be seen outside."""
    with Path("effects").open("a") as file:
        file.write(f"{line}\n")


@flow
async def publish(f: Handle, part: str) -> str:
    """A child flow."""
    answer: str = await f.plugin("upload", part=part)
    return answer


async def short_enough(f: Handle, notes: str) -> str:
    """A hook: it comes to a verdict, and may have steps of its own."""
    await f.run(["sh", "-c", "echo measured notes >> effects"])
    return "pass" if len(notes) < 200 else "fail"


@flow(
    workers={
        "llm": Worker(write_notes, in_flight="again"),
        "plugin": Worker(upload, in_flight="ask", look_up=find_upload),
    }
)
async def release(f: Handle, version: str) -> dict[str, object]:
    """Check, write, upload, ask, announce."""
    *_, notes = await asyncio.gather(
        f.run(["sh", "-c", "echo checked style >> effects"]),
        f.run(["sh", "-c", "echo checked behavior >> effects"]),
        f.llm(f"notes of {version}"),
    )
    if await f.hook("short_enough", short_enough, notes) != "pass":
        return {"released": False}
    parts = await asyncio.gather(*[f.dispatch(publish, part) for part in ("program", "manual")])
    if await f.human(f"Announce {version}?", to="anna") != "yes":
        return {"released": True, "announced": False, "parts": parts}
    await f.run(["sh", "-c", f"echo announced {version} >> effects"])
    return {"released": True, "announced": True, "parts": parts}
