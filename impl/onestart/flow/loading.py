"""Finding a flow by what is typed on a command line: `package.module:NAME`, or `folder/file.py:NAME`."""

from __future__ import annotations

import importlib
import sys
import traceback
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from onestart.command import escaped
from onestart.flow.definition import Flow
from onestart.flow.errors import FlowError


class NotFoundError(FlowError):
    """There is no such flow; the message says what there is instead."""

    reason = "flow_not_found"


def load(place: str) -> Flow:
    """The flow under this name in a module, which is imported, or in a file, which is executed.

    Modules are looked for in the current folder too. Raises NotFoundError.
    """
    where, _, name = place.rpartition(":")
    if not where or not name:
        raise NotFoundError(f"write MODULE:FLOW or FILE.py:FLOW, not {escaped(place)}")
    module = _file(where) if where.endswith(".py") else _module(where)
    found = getattr(module, name, None)
    if isinstance(found, Flow):
        return found
    if found is not None:
        raise NotFoundError(f"{place} is no flow but of type {type(found).__name__}; flows are declared with @flow")
    there = [known for known, value in vars(module).items() if isinstance(value, Flow)]
    raise NotFoundError(f"{where} has no flow {escaped(name)}; it has {', '.join(there) or 'none'}")


def _module(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise NotFoundError(f"{escaped(name)} is no name of a module; a file's name ends in .py")
    _look_in(Path.cwd())
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise NotFoundError(f"there is no module {error.name}") from None
        raise _broken(name, error) from None
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from None


def _file(name: str) -> ModuleType:
    path = Path(name)
    if not path.is_file():
        raise NotFoundError(f"there is no file {escaped(name)}")
    spec = spec_from_file_location(f"flow_file_{path.stem}", path.resolve())
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    _look_in(path.resolve().parent)
    sys.modules[module.__name__] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise _broken(name, error) from None
    return module


def _look_in(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _broken(name: str, error: BaseException) -> NotFoundError:
    """Where the innermost line of the user's own code is, and what went wrong there."""
    where = ""
    if isinstance(error, SyntaxError):
        where = f"{error.filename}:{error.lineno}: "
    else:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if not f.filename.startswith("<")]
        ours = (str(Path(__file__).parent.parent), str(Path(importlib.__file__).parent))
        own = [f for f in frames if not f.filename.startswith(ours)]
        where = f"{own[-1].filename}:{own[-1].lineno}: " if own else ""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    return NotFoundError(f"{name} cannot be imported: {where}{type(error).__name__}: {said}")
