"""An event loop in virtual time: a whole cluster runs on it in one thread, from one seed, the same way every time.

When nothing is ready the time jumps to the next timer, so a year costs as little as what happens in it. Everything
asyncio offers without threads, signals, processes and real sockets works; ``network`` holds the connections. Tests
call ``simulate``; the code under test does not know.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import hashlib
import inspect
import math
import sys
import threading
import weakref
from asyncio.events import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from heapq import heappop, heappush
from random import Random
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast

from barnabas.testing.hosts import Host, host_of
from barnabas.testing.network import Network, SimulatedServer
from barnabas.testing.tasks import SimulatedFuture, SimulatedTask
from barnabas.testing.unsimulated import UnsimulatedLoop

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

NANOSECONDS: Final = 1_000_000_000
DIGEST_BYTES: Final = 16
TASKS_NAMED_MAX: Final = 20
LAST_WORDS_SECONDS: Final = 60  # virtual ones
_NEVER_COLLECTED: Final[list[asyncio.Task[Any]]] = []


class Deadlock(RuntimeError):
    """Tasks wait, nothing is ready and no timer will ever wake anyone."""


class VirtualTimeOver(RuntimeError):
    """The simulation was given a time limit and is not done."""


class SimulatedLoop(UnsimulatedLoop):
    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.errors: list[dict[str, Any]] = []
        self.time_s_max: float | None = None
        self.after_event: Callable[[Host | None], None] | None = None  # a test looks at the host on which it happened
        self.network = Network(self, Random(f"network/{seed}"))  # noqa: S311  # a simulation is to be guessed
        self._now_ns = 0
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[int, int, asyncio.TimerHandle]] = []
        self._held: list[asyncio.Handle] = []  # of hosts that are paused or dead
        self._numbers = 0
        # asyncio knows tasks weakly: one whose host was killed would be collected, and say its last words, anywhere.
        self._tasks: dict[SimulatedTask[Any], None] = {}
        self._failed: list[SimulatedTask[Any]] = []
        self._generators: list[tuple[Host, weakref.ref[AsyncGenerator[Any, Any]]]] = []
        self._handler: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        self._factory: Any = None
        self._hash = hashlib.blake2b(digest_size=DIGEST_BYTES)
        self._is_stopping = False
        self._is_closed = False
        self._is_debugging = False
        self._thread: int | None = None

    # Time and order.

    @property
    def now_ns(self) -> int:
        return self._now_ns

    def time(self) -> float:
        return self._now_ns / NANOSECONDS

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def trace(self, kind: str, subject: int, data: bytes = b"") -> None:
        """Add an event to the hash of this run."""
        self._hash.update(b"%d %s %d %d\n" % (self._now_ns, kind.encode(), subject, len(data)))
        self._hash.update(data)

    def trace_hash(self) -> str:
        """Equal for two runs in which the same happened at the same times, so far."""
        digest = self._hash.copy()
        digest.update(b"%d %d" % (self._now_ns, self._numbers))
        return digest.hexdigest()

    # Callbacks.

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        self._check_open()
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        if self._thread is not None and self._thread != threading.get_ident():
            raise RuntimeError("another thread called into a simulation: threads are not deterministic")
        return self.call_soon(callback, *args, context=context)

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at_ns(self._now_ns + round(delay * NANOSECONDS), callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        # Never early, not by a fraction of a nanosecond: whoever looks at the time again must find that it has come.
        when_ns = math.ceil(when * NANOSECONDS)
        if when_ns / NANOSECONDS < when:
            when_ns += 1
        return self.call_at_ns(when_ns, callback, *args, context=context)

    def call_at_ns(
        self,
        when_ns: int,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: contextvars.Context | None = None,
    ) -> asyncio.TimerHandle:
        self._check_open()
        timer = asyncio.TimerHandle(when_ns / NANOSECONDS, callback, args, self, context)
        heappush(self._timers, (when_ns, self.next_number(), timer))
        return timer

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """A cancelled timer is skipped when its time comes, and moves the time no more."""

    # Futures and tasks.

    def create_future(self) -> asyncio.Future[Any]:
        return SimulatedFuture(self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: contextvars.Context | None = None,
    ) -> asyncio.Task[T]:
        self._check_open()
        if self._factory is not None:
            return cast("asyncio.Task[T]", self._factory(self, coro, context=context))
        task = SimulatedTask(coro, loop=self, name=name, context=context)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        del self._tasks[cast("SimulatedTask[Any]", task)]
        # Whether anyone ever asks for the exception is known at the end; looking here must not count as asking.
        if task._log_traceback:
            self._failed.append(cast("SimulatedTask[Any]", task))

    def tasks(self) -> list[SimulatedTask[Any]]:
        """All that are not done, oldest first."""
        return [task for task in self._tasks if not task.done()]

    def set_task_factory(self, factory: Any) -> None:
        self._factory = factory

    def get_task_factory(self) -> Any:
        return self._factory

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """There is none."""

    # Running.

    def run_forever(self) -> None:
        self._check_open()
        if _get_running_loop() is not None:
            raise RuntimeError("an event loop is running already")
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=self._on_generator, finalizer=self._on_generator_dropped)
        self._thread = threading.get_ident()
        _set_running_loop(self)
        try:
            while True:
                self._run_once()
                if self._is_stopping:
                    return
        finally:
            self._is_stopping = False
            self._thread = None
            _set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def _run_once(self) -> None:
        timers, ready = self._timers, self._ready
        while timers and timers[0][2].cancelled():
            heappop(timers)
        if not ready and not self._is_stopping:
            if not timers:
                raise Deadlock(f"nothing will ever happen again; {self._waiting()}")
            self._now_ns = max(self._now_ns, timers[0][0])
            if self.time_s_max is not None and self.time() > self.time_s_max:
                raise VirtualTimeOver(f"{self.time_s_max} s of virtual time have passed; {self._waiting()}")
        while timers and timers[0][0] <= self._now_ns:
            ready.append(heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled() and not (self.network.hosts.any_halted and self._is_held(handle)):
                handle._run()
                if self.after_event is not None:
                    self.after_event(host_of(handle._context))  # type: ignore[attr-defined]

    def _is_held(self, handle: asyncio.Handle) -> bool:
        host = host_of(handle._context)  # type: ignore[attr-defined]
        if host is None or not host.is_halted:
            return False
        self._held.append(handle)
        return True

    def release_held(self) -> None:
        """A host goes on: what was held for it runs now, in its order; what others are held for is held again."""
        self._ready.extend(self._held)
        self._held.clear()

    def _waiting(self) -> str:
        tasks = self.tasks()
        lines = [f"{len(tasks)} tasks wait (seed {self.seed}):"]
        lines += [f"  {task!r}" for task in tasks[:TASKS_NAMED_MAX]]
        return "\n".join(lines)

    def run_until_complete(self, future: Generator[Any, None, T] | Awaitable[T]) -> T:
        self._check_open()
        awaited: asyncio.Future[T] = asyncio.ensure_future(cast("Awaitable[T]", future), loop=self)
        awaited.add_done_callback(self._stop_after)
        try:
            self.run_forever()
        finally:
            awaited.remove_done_callback(self._stop_after)
        if not awaited.done():
            raise RuntimeError("the loop was stopped before the future was done")
        return awaited.result()

    def _stop_after(self, _: asyncio.Future[Any]) -> None:
        self.stop()

    def stop(self) -> None:
        self._is_stopping = True

    def is_running(self) -> bool:
        return self._thread is not None

    def is_closed(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        if self.is_running():
            raise RuntimeError("a running loop cannot be closed")
        self._is_closed = True
        self._ready.clear()
        self._timers.clear()

    def _check_open(self) -> None:
        if self._is_closed:
            raise RuntimeError("the loop is closed")

    def finish(self) -> None:
        """Cancel what is left, oldest first, let it end, close, and raise what nobody handled."""
        self.time_s_max = None
        self._cancel([task for task in self.tasks() if task.host is None or not task.host.is_halted])
        self.run_until_complete(self.shutdown_asyncgens())
        for task in self._failed:
            if task._log_traceback:
                context = {"message": f"nobody asked for the exception of {task!r}", "exception": task.exception()}
                self.call_exception_handler(context)
        errors = [_as_error(error) for error in self.errors]
        self.abandon()
        if errors:
            raise ExceptionGroup("unhandled errors in the simulation", errors)

    def abandon(self) -> None:
        """Take down what still waits, the halted hosts too, whatever it says to that, and close."""
        self.time_s_max = None
        self.network.hosts.any_halted = False
        self.release_held()
        tasks = self.tasks()
        for task in tasks:
            task.cancel()
        if tasks:
            with contextlib.suppress(Deadlock):
                # Some wait in their last words for peers that died with them.
                self.run_until_complete(asyncio.wait(tasks, timeout=LAST_WORDS_SECONDS))
        # To collect one that still waits in its last words would raise in whatever runs then.
        _NEVER_COLLECTED.extend(self.tasks())
        for task in (*self._failed, *self.tasks()):
            task._log_traceback = False
        for task in self.tasks():
            coroutine = task.get_coro()
            if inspect.iscoroutine(coroutine) and inspect.getcoroutinestate(coroutine) == inspect.CORO_CREATED:
                coroutine.close()  # its host was killed before its first step
        self.close()

    def _cancel(self, tasks: list[SimulatedTask[Any]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            self.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    # Asynchronous generators.

    def _on_generator(self, generator: AsyncGenerator[Any, Any]) -> None:
        self._generators.append((self.network.hosts.current(), weakref.ref(generator)))

    def _on_generator_dropped(self, generator: AsyncGenerator[Any, Any]) -> None:
        if not self._is_closed:
            self.create_task(generator.aclose())

    async def shutdown_asyncgens(self) -> None:
        """Those of halted hosts stand still with the task that is inside them."""
        generators, self._generators = self._generators, []
        for host, reference in generators:
            generator = reference()
            if generator is not None and not host.is_halted:
                await generator.aclose()

    # Errors and debugging.

    def set_exception_handler(self, handler: Any) -> None:
        self._handler = handler

    def get_exception_handler(self) -> Any:
        return self._handler

    def default_exception_handler(self, context: dict[str, Any]) -> None:
        """Keep it: ``finish`` fails on what is kept here."""
        self.errors.append(context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        if self._handler is None:
            self.default_exception_handler(context)
        else:
            self._handler(self, context)

    def get_debug(self) -> bool:
        return self._is_debugging

    def set_debug(self, enabled: bool) -> None:
        self._is_debugging = enabled

    # Network and hosts.

    def start_on(self, host: str, coroutine: Coroutine[Any, Any, T], *, name: str | None = None) -> asyncio.Task[T]:
        """A task on a host: whatever it starts, opens or is called back with runs there too."""
        return self.create_task(coroutine, name=name, context=self.network.hosts.context(host))

    async def create_server(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: int = 0, **options: Any
    ) -> SimulatedServer:
        return self.network.listen(protocol_factory, host, port, **options)

    async def create_connection(  # type: ignore[override]
        self, protocol_factory: Callable[[], asyncio.BaseProtocol], host: Any = None, port: int = 0, **options: Any
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        return await self.network.connect(protocol_factory, host, port, **options)


def _as_error(context: dict[str, Any]) -> Exception:
    error = context.get("exception")
    return error if isinstance(error, Exception) else RuntimeError(f"{context.get('message')} {error or ''}".strip())


def simulate(main: Callable[[], Coroutine[Any, Any, T]], *, seed: int = 0, time_s_max: float | None = None) -> T:
    """Run a coroutine in a simulation of its own, as asyncio.run does, and fail on every error nobody handled."""
    loop = SimulatedLoop(seed)
    loop.time_s_max = time_s_max
    try:
        result = loop.run_until_complete(main())
        loop.finish()
    except BaseException as error:
        error.add_note(f"seed {seed}, at {loop.time():.9f} s of virtual time, trace {loop.trace_hash()}")
        if not loop.is_closed():
            loop.abandon()
        raise
    return result
