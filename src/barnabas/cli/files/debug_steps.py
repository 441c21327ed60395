"""One text of a debug bundle at a time: an answer as JSON, a page or the end of a file, bounded in time and size.

Taking one never raises what a cluster, a disk or a network can do: what went wrong is part of what is brought.
``debug_bundle.py`` says what is asked.
"""

from __future__ import annotations

import asyncio
import enum
import json
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from barnabas.cli.terminal.connection import sentence
from barnabas.model.errors import ApiError, BarnabasError, WireError
from barnabas.ops.failure import Failure

TEXT_CHARACTERS_MAX: Final = 16 << 20
LOG_BYTES_MAX: Final = 1 << 20


class Taken(NamedTuple):
    """What a step brought."""

    name: str  # in the archive
    source: str  # what was asked, the address or the file
    text: str = ""
    error: str = ""  # why there is nothing, or less than there should be
    seconds: float = 0.0
    is_cut: bool = False


async def take(name: str, source: str, ask: Callable[[], Awaitable[str]], *, seconds_max: float) -> Taken:
    """A text, or why there is none; a text that is too long is cut."""
    started = time.monotonic()
    text = error = ""
    try:
        async with asyncio.timeout(seconds_max):
            text = await ask()
    except TimeoutError:
        error = f"not done within {seconds_max:g} s"
    except BarnabasError as failure:
        error = sentence(failure)
    except (Failure, OSError) as failure:
        error = str(failure)
    seconds = round(time.monotonic() - started, 3)
    is_cut = len(text) > TEXT_CHARACTERS_MAX
    return Taken(name, source, text[:TEXT_CHARACTERS_MAX], error, seconds, is_cut)


def as_json(value: Any) -> str:
    return json.dumps(plain(value), indent=1, ensure_ascii=False)


def plain(value: Any) -> Any:
    """What an admin client answers, in the types of JSON; names of fields are kept."""
    if isinstance(value, ApiError):
        return {"error": value.error.name, "message": value.message}
    if isinstance(value, WireError):
        return value.name
    if isinstance(value, enum.Enum):
        return value.name.lower()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(each) for key, each in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_asdict") and type(value).__str__ is tuple.__str__:
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, set | frozenset):
        return sorted(plain(each) for each in value)
    if isinstance(value, list) or type(value) is tuple:
        return [plain(each) for each in value]
    return value if value is None or isinstance(value, str | int | float) else str(value)


async def page(url: str, *, seconds_max: float) -> str:
    from barnabas.http.client import get

    return (await get(url, size_bytes_max=TEXT_CHARACTERS_MAX, timeout_seconds=seconds_max)).decode(errors="replace")


def tail(name: str, path: Path) -> Taken:
    """The last lines of a file."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES_MAX))
            data = file.read(LOG_BYTES_MAX)
    except OSError as error:
        return Taken(name, str(path), error=error.strerror or str(error))
    is_cut = size > LOG_BYTES_MAX
    if is_cut:
        data = data.partition(b"\n")[2]  # half a line says little
    return Taken(name, str(path), data.decode(errors="replace"), is_cut=is_cut)
