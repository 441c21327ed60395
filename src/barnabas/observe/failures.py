"""The exception handler of a broker's event loop: logs what no caller handled, with its traceback, and counts it.

``world.tasks`` reports failed tasks here, and asyncio reports exceptions of callbacks and of tasks that were never
awaited. The process that runs the broker installs it with ``loop.set_exception_handler(failures.handle)``.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from barnabas.observe.log import logger

log = logger("failures")

CALLBACK: Final = "callback"  # name for failures outside of any task


class Failures:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}  # failures since the start, by the first part of the task's name

    def handle(self, _: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log and count one report, which has the form that ``loop.call_exception_handler`` describes."""
        name = _name(context)
        kind = name.partition(":")[0]  # the rest names a partition, an address or an id
        self.counts[kind] = self.counts.get(kind, 0) + 1
        error = context.get("exception")
        log.failure(context.get("message", "unhandled error"), error, task=name)


def _name(context: dict[str, Any]) -> str:
    if "task_name" in context:
        return str(context["task_name"])
    task = context.get("task") or context.get("future")
    return task.get_name() if isinstance(task, asyncio.Task) else CALLBACK
