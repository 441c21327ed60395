"""Tasks that a worker process keeps between batches.

They are in a module of their own because functions that are sent to workers by value lose their globals.
A task is taken out while it works, so one that fails halfway is not found again.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from barnabas.streams.host.hosted import HostedTask

__all__ = ["Kept", "keep", "take"]

TASKS_MAX: Final = 256  # tasks that one worker process keeps


class Kept(NamedTuple):
    """A task and the version of the state that it has."""

    task: HostedTask
    position: int
    token: bytes


_kept: OrderedDict[tuple[str, int, int], Kept] = OrderedDict()  # by query, stage and task


def take(query: str, stage: int, task: int) -> Kept | None:
    """The kept task, which is not kept any more."""
    return _kept.pop((query, stage, task), None)


def keep(query: str, stage: int, task: int, kept: Kept) -> None:
    """Keep a task; the one that was used longest ago makes room."""
    _kept[query, stage, task] = kept
    while len(_kept) > TASKS_MAX:
        _kept.popitem(last=False)
