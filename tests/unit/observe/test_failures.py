"""The loop's exception handler: every failure is logged with its traceback and counted."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.observe.failures import Failures
from barnabas.world.tasks import Tasks


async def broken() -> None:
    raise KeyError("a mistake")


def test_a_failed_task_is_logged_with_its_traceback_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Failures:
        failures, tasks = Failures(), Tasks()
        asyncio.get_running_loop().set_exception_handler(failures.handle)
        tasks.start(broken(), "flush:orders-0")
        tasks.start(broken(), "flush:orders-1")
        tasks.start(broken(), "retention")
        await tasks.done()
        return failures

    assert asyncio.run(main()).counts == {"flush": 2, "retention": 1}
    assert "task flush:orders-0 failed task=flush:orders-0" in caplog.text
    assert "in broken" in caplog.text
    assert "KeyError: 'a mistake'" in caplog.text


def test_a_failed_callback_is_logged_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> Failures:
        failures = Failures()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(failures.handle)
        loop.call_soon(lambda: 1 // 0)
        await asyncio.sleep(0)
        return failures

    assert asyncio.run(main()).counts == {"callback": 1}
    assert "ZeroDivisionError" in caplog.text
