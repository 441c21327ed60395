"""The registry as an object: reads from memory, writes through the leader's log, schemas checked by worker processes.

``api/`` turns requests into calls of this. A registration holds a lock of its subject while it is checked, so that a
schema which takes long to check delays its own subject only, and the one lock of the log while it is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Self

from barnabas.client.settings.client import Settings
from barnabas.model.errors import BarnabasError
from barnabas.registry import errors, writes
from barnabas.registry.election import SESSION_MS, Election
from barnabas.registry.engines import CheckJob, FormatJob, Parsed, ParseJob, Source
from barnabas.registry.incompatibility import InvalidSchema
from barnabas.registry.log import NotLeader, SchemaLog
from barnabas.registry.names import context_of, normal
from barnabas.registry.pool import Pool
from barnabas.registry.records import Reference, StoredSchema
from barnabas.registry.state import State
from barnabas.registry.writes import Draft, Written

DEFAULT_GROUP: Final = "schema-registry"
TEXT_BYTES_MAX: Final = 1_000_000  # about what a topic accepts by default
REFERENCES_MAX: Final = 1000  # of one schema, indirect ones too
PARSED_MAX: Final = 10_000  # results that are remembered
LEAD_SECONDS_MAX: Final = 15.0
WATCH_SECONDS: Final = 2.0  # between two looks for the topic


class SchemaRegistry:
    """``async with SchemaRegistry(settings, address=url) as registry``; others reach this process at ``address``."""

    def __init__(
        self,
        settings: Settings,
        *,
        address: str = "",
        group: str = DEFAULT_GROUP,
        session_ms: int = SESSION_MS,
        pool: Pool | None = None,
    ) -> None:
        self.group = group
        self._log = SchemaLog(settings)
        self._pool = pool or Pool()
        self.election = Election(
            settings,
            group=group,
            address=address,
            on_elected=self._log.lead,
            on_deposed=self._log.resign,
            session_ms=session_ms,
        )
        self._is_awake = False
        self._waking = asyncio.Lock()
        self._watching: asyncio.Task[None] | None = None
        self._subject_locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._write_lock = asyncio.Lock()
        self._parsed: dict[tuple[Source, bool, bool], Parsed] = {}

    @property
    def address(self) -> str:
        return self.election.address

    @address.setter
    def address(self, url: str) -> None:
        """Before it is started: a port may be known only when it is bound."""
        self.election.address = url

    async def __aenter__(self) -> Self:
        """Without the topic nothing is started: a cluster that has no schemas has no group and no topic for them."""
        if await self._log.exists():
            await self._wake()
        else:
            self._watching = asyncio.get_running_loop().create_task(self._watch(), name="registry-topic")
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.wait([self._watching])
        await self.election.close()
        await self._log.close()
        await self._pool.close()

    async def _watch(self) -> None:
        """Until another process has created the topic, or a write has."""
        while not self._is_awake:
            await asyncio.sleep(WATCH_SECONDS)
            with suppress(BarnabasError):
                if await self._log.exists():
                    await self._wake()

    async def _wake(self) -> None:
        """Create the topic if there is none, read it, and take part in the election."""
        async with self._waking:
            if not self._is_awake:
                await self._log.start()
                self.election.start()
                self._is_awake = True

    @property
    def state(self) -> State:
        return self._log.state

    @property
    def is_read(self) -> bool:
        return not self._is_awake or self._log.is_read.is_set()

    @property
    def cluster_id(self) -> str:
        return self._log.cluster_id

    async def wait_until_read(self) -> None:
        if self._is_awake:
            await self._log.is_read.wait()

    async def catch_up(self) -> None:
        """Read what another process has written by now."""
        await self._log.catch_up()

    # --- schemas --------------------------------------------------------------------------------------------------

    def sources(self, draft: Draft) -> Source:
        """The draft with the texts that it refers to; raises RestError if one of them does not exist."""
        writes.check_references(self.state, draft)
        found: dict[str, str] = {}
        self._collect(draft.subject, draft.references, found)
        return Source(draft.kind, draft.text, tuple(found.items()))

    def _collect(self, subject: str, references: tuple[Reference, ...], found: dict[str, str]) -> None:
        context = context_of(subject)
        for each in references:
            if each.name in found:
                continue
            if len(found) >= REFERENCES_MAX:
                raise errors.invalid_schema(f"it refers to more than {REFERENCES_MAX} schemas")
            target = self.state.version(normal(each.subject, context=context), each.version, deleted=True)
            if target is None:
                raise errors.invalid_schema(f"no schema exists for the reference {each.name!r}")
            found[each.name] = ""  # a cycle ends here
            self._collect(target.subject, target.references, found)
            del found[each.name]
            found[each.name] = target.text  # behind those that it refers to itself

    def source_of(self, schema: StoredSchema) -> Source:
        found: dict[str, str] = {}
        self._collect(schema.subject, schema.references, found)
        return Source(schema.kind, schema.text, tuple(found.items()))

    async def parse(self, source: Source, *, normalize: bool = False, is_new: bool = True) -> Parsed:
        """Raises RestError for what is not a schema."""
        size = len(source.text.encode())
        if size > TEXT_BYTES_MAX:
            raise errors.too_large(size, TEXT_BYTES_MAX)
        if not source.text.strip():
            raise errors.invalid_schema("the schema is empty")
        key = source, normalize, is_new
        known = self._parsed.get(key)
        if known is None:
            known = await self._performed(ParseJob(source, normalize, is_new), Parsed)
            if len(self._parsed) >= PARSED_MAX:
                del self._parsed[next(iter(self._parsed))]
            self._parsed[key] = known
        return known

    async def _performed(self, job: Any, kind: Any) -> Any:
        try:
            return await self._pool.run(job, kind)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from None

    async def formatted(self, schema: StoredSchema, format_: str) -> str:
        """The text in a format of the API; empty for the text as it is kept."""
        if not format_.strip():
            return schema.text
        return str(await self._performed(FormatJob(self.source_of(schema), format_.strip()), str))

    async def check(self, draft: Draft, earlier: list[StoredSchema], *, normalize: bool = False) -> list[str]:
        """Why a schema is incompatible with earlier versions at the subject's level; nothing if it is compatible."""
        source = self.sources(draft)
        await self.parse(source, normalize=normalize)
        config = self.state.config_in_scope(draft.subject)
        return await self._check(draft, source, earlier, config)

    async def _check(
        self, draft: Draft, source: Source, earlier: list[StoredSchema], config: dict[str, Any]
    ) -> list[str]:
        group = config.get("compatibilityGroup")
        if group is not None:
            value = _property(draft.metadata, group)
            earlier = [each for each in earlier if _property(each.metadata, group) == value]
        level = str(config.get("compatibilityLevel"))
        if not level.endswith("_TRANSITIVE"):
            earlier = earlier[-1:]
        if level == "NONE" or not earlier:
            return []
        versions = tuple((each.version, self.source_of(each)) for each in earlier)
        policy = str(config.get("compatibilityPolicy") or "STRICT")
        found: list[str] = await self._performed(CheckJob(source, versions, level, policy), list[str])
        return found

    async def look_up(self, draft: Draft, *, normalize: bool, deleted: bool) -> StoredSchema | None:
        """The version of the draft's subject that is the same schema."""
        source = self.sources(draft)
        parsed = await self.parse(source, normalize=self._normalizes(draft.subject, normalize), is_new=False)
        return await self._same(_with_text(draft, parsed), parsed, deleted=deleted)

    def _normalizes(self, subject: str, normalize: bool) -> bool:
        return normalize or self.state.config_in_scope(subject).get("normalize") is True

    async def _same(self, draft: Draft, parsed: Parsed, *, deleted: bool = False) -> StoredSchema | None:
        found = writes.same_version(self.state, draft, deleted=deleted)
        if found is not None or draft.kind != "PROTOBUF":
            return found
        # A Protobuf file has many texts, and serializers register descriptors: what they mean is compared.
        for each in reversed(self.state.versions(draft.subject, deleted=deleted)):
            if each.kind == draft.kind and each.references == draft.references:
                other = await self.parse(self.source_of(each), is_new=False)
                if other.fingerprint == parsed.fingerprint:
                    return each
        return None

    # --- writes ---------------------------------------------------------------------------------------------------

    async def register(self, draft: Draft, *, normalize: bool) -> StoredSchema:
        writes.check_register_mode(self.state, draft.subject, has_id=draft.id >= 0)
        if draft.id < 0 and draft.version == 0 and not normalize:
            found = writes.same_version(self.state, draft)  # a producer that starts again sends what is kept already
            if found is not None:
                return found
        async with self._locked(draft.subject):
            draft = self._completed(draft)
            source = self.sources(draft)
            parsed = await self.parse(source, normalize=self._normalizes(draft.subject, normalize))
            draft = _with_text(draft, parsed)
            is_import = self.state.mode_in_scope(draft.subject) in writes.IMPORTING
            if draft.version == 0:
                found = await self._same(draft, parsed)
                if found is not None and draft.id in (-1, found.id):
                    return found
            if not is_import:
                config = self.state.config_in_scope(draft.subject)
                earlier = self.state.versions(draft.subject, deleted=False)
                messages = await self._check(draft, source, earlier, config)
                if messages:
                    raise errors.incompatible(draft.subject, messages)

            def decide(state: State) -> Written:
                writes.check_references(state, draft)
                return writes.register(state, draft)

            registered: StoredSchema = await self.write(decide)
            return registered

    def _completed(self, draft: Draft) -> Draft:
        """Without text it means the latest version's; metadata and rules that are not given are inherited."""
        latest = self.state.version(draft.subject, -1)
        if latest is None:
            return draft
        text, kind, references = draft.text, draft.kind, draft.references
        if not text.strip():
            text, kind, references = latest.text, latest.kind, latest.references
        metadata = latest.metadata if draft.metadata is None else draft.metadata
        rule_set = latest.ruleSet if draft.rule_set is None else draft.rule_set
        return Draft(draft.subject, text, kind, references, metadata, rule_set, draft.id, draft.version)

    async def write(self, decide: Callable[[State], Written]) -> Any:
        """Decide on the newest state, append what was decided, and return the answer; raises NotLeader."""
        async with self._write_lock:
            if not self.election.leads:
                raise NotLeader("this process does not lead the registry")
            written = decide(self.state)
            try:
                await self._log.write(written.records)
            except BaseException:
                self.election.distrust()
                raise
            return written.answer

    async def leads_soon(self) -> bool:
        """Whether this process leads, or another one is known to; waits a while for the election's end."""
        await self._wake()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + LEAD_SECONDS_MAX
        while not self.election.leads:
            leader = await self.election.leader()
            if leader and leader != self.address:
                return False
            if loop.time() >= deadline:
                raise errors.no_leader()
            await asyncio.sleep(0.05)
        return True

    @asynccontextmanager
    async def _locked(self, subject: str) -> AsyncIterator[None]:
        lock, users = self._subject_locks.get(subject, (asyncio.Lock(), 0))
        self._subject_locks[subject] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            lock, users = self._subject_locks[subject]
            if users == 1:
                del self._subject_locks[subject]
            else:
                self._subject_locks[subject] = lock, users - 1


def _with_text(draft: Draft, parsed: Parsed) -> Draft:
    return Draft(
        draft.subject,
        parsed.text,
        draft.kind,
        draft.references,
        draft.metadata,
        draft.rule_set,
        draft.id,
        draft.version,
    )


def _property(metadata: dict[str, Any] | None, name: str) -> Any:
    return ((metadata or {}).get("properties") or {}).get(name)
