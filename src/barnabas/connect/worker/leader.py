"""What only the leader does: write configurations, run the driver, and carry out what the machine decides."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.connect.worker.children import Child
from barnabas.connect.worker.knowledge import Knowledge
from barnabas.connect.worker.machine import Effect, Facts, Machine, Tell
from barnabas.connect.worker.state import Stores
from barnabas.connect.worker.store import Write, offset_record, topic_record
from barnabas.model.errors import BarnabasError
from barnabas.observe.log import logger

DRIVER: Final = "barnabas.connect.driver.main"
DRIVER_PAUSE_FIRST: Final = 1.0  # seconds before a driver that died is started again
DRIVER_PAUSE_MAX: Final = 60.0
IDLE_SECONDS: Final = 60.0  # without connectors, after which the driver is stopped
TICK_SECONDS: Final = 1.0

_log: Final = logger("connect")


class Leader:
    """A term of leadership: from winning the config topic's partition to losing it."""

    def __init__(
        self,
        stores: Stores,
        knowledge: Knowledge,
        *,
        client: Mapping[str, str],
        group: str,
        worker_id: str,
        driver: str,
        driver_settings: Mapping[str, Any],
        tracks_topics: bool = True,
    ) -> None:
        self._tracks_topics = tracks_topics
        self._stores = stores
        self._knowledge = knowledge
        self._machine = Machine(worker_id)
        told = {**client, "transactional.id": f"connect-cluster-{group}"}
        self._configs: Producer[bytes, bytes] = Producer(ProducerSettings.of(told))
        self._plain: Producer[bytes, bytes] = Producer(ProducerSettings.of({**client, "linger.ms": "5"}))
        log = Path(driver_settings["data_dir"]) / "driver.log"
        self._driver = Child(driver, driver_settings, self._on_event, log=log)
        self.details: dict[str, Mapping[str, Any]] = {}  # what sources report about themselves, by connector
        self._driver_pause = 0.0
        self._idle_since: float | None = None
        self._news = asyncio.Event()
        self._events: list[Mapping[str, Any]] = []
        self._running: asyncio.Task[None] | None = None
        self._writing = asyncio.Lock()  # one transaction at a time
        self._deciding = asyncio.Lock()  # effects are carried out in the order in which they were decided

    @property
    def driver_pid(self) -> int | None:
        """Return the id of the driver's process, if it runs."""
        return self._driver.pid if self._driver.is_running else None

    async def start(self) -> None:
        """Fence the leader before this one, read what it wrote, and begin."""
        await self._configs.begin_transaction()
        await self._configs.abort_transaction()
        await self._stores.configs.catch_up()
        await self._stores.offsets.catch_up()
        self._running = asyncio.create_task(self._run(), name="connect-leader")

    async def stop(self) -> None:
        """Stop the driver and everything that runs in it."""
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        await self._driver.stop()
        for producer in (self._configs, self._plain):
            with suppress(BarnabasError):
                await producer.close(flush=False)

    async def write_configs(self, records: Iterable[Write]) -> None:
        """Write records to the config topic in a transaction, and wait until this worker has read them."""
        async with self._writing:
            async with self._configs.transaction():
                ends = await self._stores.configs.write(self._configs, records)
            await self._stores.configs.wait_for(ends)
        self.wake()

    async def write_offsets(self, records: Iterable[Write]) -> None:
        """Write records to the offset topic, and wait until this worker has read them."""
        await self._stores.offsets.wait_for(await self._stores.offsets.write(self._plain, records))

    async def write_statuses(self, records: Iterable[Write]) -> None:
        """Write records to the status topic, and wait until this worker has read them."""
        await self._stores.statuses.wait_for(await self._stores.statuses.write(self._plain, records))

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> None:
        """Restart a connector now."""
        facts = await self._facts()
        async with self._deciding:
            effects = self._machine.restart(
                self._stores.config, facts, name, include_tasks=include_tasks, only_failed=only_failed
            )
            await self._perform(effects)

    async def settle(self) -> None:
        """Do now what the newest configurations ask for."""
        await self._reconcile()

    def wake(self) -> None:
        """Look again soon."""
        self._news.set()

    def _on_event(self, event: Mapping[str, Any]) -> None:
        self._events.append(event)
        self._news.set()

    async def _run(self) -> None:
        while True:
            try:
                await self._take_events()
                await self._reconcile()
                await self._look_after_driver()
            except BarnabasError as error:
                _log.warning("leader failed; trying again", error=error)
            with suppress(TimeoutError):
                async with asyncio.timeout(TICK_SECONDS):
                    await self._news.wait()
            self._news.clear()

    async def _take_events(self) -> None:
        events, self._events = self._events, []
        for event in events:
            match event.get("event"):
                case "exit":
                    await self._driver_ended(event)
                case "offsets":
                    records = [offset_record(event["name"], each[0], each[1]) for each in event["entries"]]
                    await self._stores.offsets.write(self._plain, records)
                case "details":
                    self.details[event["name"]] = event["details"]
                case "topics" if not self._tracks_topics:
                    pass
                case "topics":
                    known = self._stores.status.topics.get(event["name"], set())
                    now_ms = time.time_ns() // 1_000_000
                    fresh = [topic for topic in event["topics"] if topic not in known]
                    await self._stores.statuses.write(
                        self._plain, [topic_record(event["name"], topic, now_ms) for topic in fresh]
                    )
                case kind:
                    self._driver_pause = 0.0 if kind == "running" else self._driver_pause
                    async with self._deciding:
                        await self._perform(self._machine.on_event(event, time.monotonic()))

    async def _driver_ended(self, event: Mapping[str, Any]) -> None:
        _log.error("driver ended", code=event.get("code"))
        async with self._deciding:
            await self._perform(self._machine.forget_driver())
        self._driver_pause = min(DRIVER_PAUSE_MAX, max(DRIVER_PAUSE_FIRST, self._driver_pause * 2))
        await asyncio.sleep(self._driver_pause)

    async def _reconcile(self) -> None:
        facts = await self._facts()
        async with self._deciding:
            effects = self._machine.reconcile(self._stores.config, facts, time.monotonic())
            for name in self._machine.wanted(self._stores.config):
                connector = self._stores.config.get(name)
                if name not in facts and connector is not None:
                    effects += self._machine.refuse(connector, await self._knowledge.refusal(connector))
            await self._perform(effects)

    async def _facts(self) -> dict[str, Facts]:
        """Ask the plugin process about the configurations that it has not seen."""
        found: dict[str, Facts] = {}
        for name in self._stores.config.names():
            connector = self._stores.config.get(name)
            known = None if connector is None else await self._knowledge.of(connector)
            if connector is not None and known is not None and not known.problems:
                found[name] = Facts(connector.revision, known.version, known.task_count)
        return found

    async def _perform(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Tell):
                await self._tell(dict(effect.command))
            elif effect.topic == "config" and effect.records:
                async with self._writing, self._configs.transaction():
                    await self._stores.configs.write(self._configs, effect.records)
            elif effect.records:
                await self.write_statuses(effect.records)

    async def _tell(self, command: dict[str, Any]) -> None:
        if command["op"] == "start":
            command["entries"] = [list(each) for each in self._stores.offset.entries(command["name"])]
            if not self._driver.is_running:
                await self._driver.start()
        elif command["op"] == "stop" and not self._driver.is_running:
            self._on_event({"event": "stopped", "name": command["name"], "epoch": command["epoch"]})
        await self._driver.tell(command)

    async def _look_after_driver(self) -> None:
        if self._machine.is_needed or not self._driver.is_running:
            self._idle_since = None
            return
        now = time.monotonic()
        self._idle_since = self._idle_since or now
        if now - self._idle_since > IDLE_SECONDS:
            await self._driver.stop()
