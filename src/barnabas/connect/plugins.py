"""The plugin API: how sources, sinks, transforms and predicates are written.

Everything here runs in the connectors' own processes, never in the one that answers REST requests. Authors never see
Spark. The smallest source is a function:

    from barnabas.connect.plugins import Config, Cursor, Record, Secret, source

    class Orders(Config):
        url: str
        topic: str
        token: Secret = Secret("")

    @source("http-orders", every="10 s", replayable=False)
    def orders(config: Orders, cursor: int = 0) -> Iterator[Record | Cursor]:
        page = httpx.get(config.url, params={"after": cursor}).json()
        for order in page["orders"]:
            yield Record(topic=config.topic, key=order["id"], value=order)
        yield Cursor(page["last"])

A source with offsets of its own is a class. ``latest`` says how far one may read now, ``read`` reads such a range. The
same range must always give the same records, since a batch is repeated after a crash:

    @connector("table-source")
    class TableSource(Source[Table]):
        Config = Table
        def latest(self, since, limit): return {"id": min(self.newest(), since.get("id", 0) + limit.records)}
        def read(self, part): yield from self.rows(part.since.get("id", 0), part.until["id"])

Life of a source: ``__init__`` (no I/O) → ``start`` once for a new connector → ``latest`` per batch → ``split`` →
``read`` for each part (``lane = "own"``: in Spark's executors, on a copy made from the config; ``lane = "shared"``: in
the driver, before the range is promised) → ``committed`` when the records are durable in their topics → ``close``.

A sink takes records and makes them durable once per batch and task:

    @connector("rows-sink")
    class RowsSink(Sink[Rows]):
        Config = Rows
        def open(self, batch): self.connection = connect(self.config.url)
        def last(self, batch): ...          # number of the last batch that this task has made durable, or None
        def put(self, records): ...         # all of them or, if it raises, none: then the framework halves the list
        def flush(self, batch): ...         # durable together with the batch's number; returns what commit needs
        def commit(self, flushed, batch): ...  # driver, after all tasks; may come twice
        def close(self): ...

Life of a sink, per batch and task, in Spark's executors: ``open`` → ``last`` (the batch is skipped if it was written) →
``put`` any number of times → ``flush`` → ``close``; then ``commit`` once in the driver.

``RetriableError`` fails the batch, and the worker restarts the connector with back-off. Any other exception of ``put``
is the fault of a record: with ``errors.tolerance=all`` the framework finds the record by halving, and writes it to the
dead-letter topic.

``@transform`` and ``@predicate`` take a function of a record. Publish plugins as entry points ``barnabas.connectors``,
``barnabas.transforms``, ``barnabas.predicates``, ``barnabas.converters``, or as files in a ``plugins/`` directory.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, Literal, TypeVar, get_type_hints

from msgspec import Meta

from barnabas.connect.config import C, Config, Names, Secret, doc
from barnabas.connect.errors import ConfigError, ConnectError, DataError, OffsetError, RetriableError
from barnabas.connect.records import Batch, Cursor, Entry, Header, Limit, Offset, Part, Record
from barnabas.connect.schemas import Field, Schema

__all__ = [
    "Batch",
    "Config",
    "ConfigError",
    "ConnectError",
    "Context",
    "Cursor",
    "DataError",
    "Entry",
    "Field",
    "Header",
    "Limit",
    "Meta",
    "Names",
    "Offset",
    "OffsetError",
    "Part",
    "PollSource",
    "Predicate",
    "Record",
    "RetriableError",
    "Schema",
    "Secret",
    "Sink",
    "Source",
    "Transform",
    "connector",
    "doc",
    "predicate",
    "source",
    "transform",
]

MARK: Final = "__barnabas_plugin__"  # attribute of classes that a decorator has made plugins
Kind = Literal["source", "sink", "transformation", "predicate", "converter", "header_converter"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a decorator notes at a plugin's class."""

    name: str
    kind: Kind
    aliases: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What a connector may know of its surroundings."""

    name: str  # name of the connector
    tasks_max: int = 1
    client: Mapping[str, str] = field(default_factory=dict)  # client settings for the cluster, with credentials
    extra: Mapping[str, str] = field(default_factory=dict)  # keys under ``Config.any_prefix``

    @property
    def log(self) -> logging.Logger:
        """Return the connector's logger."""
        return logging.getLogger(f"barnabas.connect.{self.name}")


class _Connector(Generic[C]):
    Config: ClassVar[type[Config]] = Config

    def __init__(self, config: C, context: Context) -> None:
        self.config = config
        self.context = context

    def close(self) -> None:
        """Release connections. Called in each process that used the connector."""


class Source(_Connector[C]):
    """A source whose records can be read by range."""

    lane: ClassVar[Literal["shared", "own"]] = "shared"  # own: a Spark query of its own, ``read`` in executors
    every: ClassVar[str] = "1 s"  # time between batches, unless ``poll.interval.ms`` is set
    # What happens if a replayed range differs from what was committed: stop, or keep what was committed.
    replay: ClassVar[Literal["stop", "keep"]] = "stop"

    def start(self) -> Offset:
        """Return where a new connector begins. The worker stores it before it is used. Side effects are allowed."""
        return {}

    def latest(self, since: Offset, limit: Limit) -> Offset:
        """Return how far one may read now, ``since`` itself if there is nothing new. Equal places, equal JSON."""
        raise NotImplementedError

    def split(self, since: Offset, until: Offset, tasks: int) -> Sequence[Part]:
        """Return the parts of a range; records of one key belong into one part. At most ``tasks`` in ``lane="own"``."""
        return [Part(since, until)]

    def read(self, part: Part) -> Iterator[Record]:
        """Yield the records of a part; for the same part always the same ones."""
        raise NotImplementedError

    def committed(self, until: Offset) -> None:
        """Everything up to here is durable in the topics: the system that was read may forget it."""

    def details(self) -> Mapping[str, Any]:
        """Return facts about the source as it is now, as JSON values, for ``barnabas connect describe``."""
        return {}

    def sample(self, count: int) -> Iterator[Record]:
        """Yield records for a dry run. Override it if ``start`` leaves something behind at the source."""
        since = self.start()
        until = self.latest(since, Limit(count, 1024 * 1024))
        for part in self.split(since, until, 1) if until != since else ():
            yield from self.read(part)

    def entries(self, offset: Offset) -> list[Entry]:
        """Return an offset as Kafka Connect shows it: one entry for each partition of the source."""
        return [Entry({"connector": self.context.name}, offset)] if offset else []

    def offset(self, entries: Sequence[Entry]) -> Offset:
        """Return the offset of such entries; raise ``OffsetError`` for keys or values that do not fit."""
        for entry in entries:
            if dict(entry.partition) != {"connector": self.context.name}:
                raise OffsetError(f"the partition must be {{'connector': {self.context.name!r}}}")
        return dict(entries[0].offset or {}) if entries else {}


class PollSource(_Connector[C]):
    """A source that is asked for what is new after a cursor. It always runs in the shared lane."""

    every: ClassVar[str] = "10 s"
    replayable: ClassVar[bool] = True  # False: the records of a batch are kept until it is committed

    def poll(self, cursor: Any) -> Iterator[Record | Cursor]:
        """Yield records after a cursor (None at first), then the cursor that covers them."""
        raise NotImplementedError


class Sink(_Connector[C]):
    """A sink. ``put`` takes lists of at most ``put_records_max`` records."""

    every: ClassVar[str] = "1 s"
    put_records_max: ClassVar[int] = 5000

    def open(self, batch: Batch) -> None:
        """Connect."""

    def last(self, batch: Batch) -> int | None:
        """Return the number of the last batch that this task has made durable, if the target can tell."""
        return None

    def put(self, records: Sequence[Record]) -> None:
        """Write records, all of them or none; a ``value`` of None is a tombstone."""
        raise NotImplementedError

    def flush(self, batch: Batch) -> Any:
        """Make everything durable together with the batch's number; return what ``commit`` needs, picklable."""

    def commit(self, flushed: Sequence[Any], batch: Batch) -> None:
        """Publish what all tasks have flushed. Called in the driver, again after a crash."""


class Transform(Generic[C]):
    """A transform with a configuration. ``apply`` returns the record, another one, or None to drop it."""

    Config: ClassVar[type[Config]] = Config

    def __init__(self, config: C) -> None:
        self.config = config

    def apply(self, record: Record) -> Record | None:
        """Return the transformed record, or None."""
        raise NotImplementedError


class Predicate(Generic[C]):
    """A condition on records."""

    Config: ClassVar[type[Config]] = Config

    def __init__(self, config: C) -> None:
        self.config = config

    def test(self, record: Record) -> bool:
        """Return whether the condition holds."""
        raise NotImplementedError


def connector(name: str, *, aliases: Sequence[str] = ()) -> Callable[[type[T]], type[T]]:
    """Make a class a connector of this name. ``aliases`` are other names, such as a Java class that it stands for."""

    def mark(kind: type[T]) -> type[T]:
        if issubclass(kind, Sink):
            role: Kind = "sink"
        elif issubclass(kind, Source | PollSource):
            role = "source"
        else:
            raise TypeError(f"{kind.__name__} must be a subclass of Source, PollSource or Sink")
        setattr(kind, MARK, Mark(name, role, tuple(aliases)))
        return kind

    return mark


def transform(name: str, *, aliases: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Make a function ``(record) -> Record | None``, or ``(record, config)``, or a ``Transform``, a plugin."""

    def mark(made: Any) -> Any:
        kind = made if inspect.isclass(made) else _of_function(made, Transform, "apply")
        setattr(kind, MARK, Mark(name, "transformation", tuple(aliases)))
        return kind

    return mark


def predicate(name: str, *, aliases: Sequence[str] = ()) -> Callable[[Any], Any]:
    """Make a function ``(record) -> bool``, or ``(record, config)``, or a ``Predicate``, a plugin."""

    def mark(made: Any) -> Any:
        kind = made if inspect.isclass(made) else _of_function(made, Predicate, "test")
        setattr(kind, MARK, Mark(name, "predicate", tuple(aliases)))
        return kind

    return mark


def source(
    name: str, *, every: str = "10 s", replayable: bool = True, aliases: Sequence[str] = ()
) -> Callable[[Callable[..., Iterator[Record | Cursor]]], type[PollSource[Any]]]:
    """Make a function ``(config, cursor) -> Iterator[Record | Cursor]`` a source.

    ``every`` is the time between calls. With ``replayable=False`` the function may answer differently when it is
    called again with the same cursor: the worker then keeps the records of a batch until the batch is committed.
    """

    def made(function: Callable[..., Iterator[Record | Cursor]]) -> type[PollSource[Any]]:
        parameters = list(inspect.signature(function).parameters.values())
        if len(parameters) != 2:
            raise TypeError(f"{function.__name__} must take a config and a cursor")
        first = parameters[1].default
        start = None if first is inspect.Parameter.empty else first

        def poll(self: PollSource[Any], cursor: Any) -> Iterator[Record | Cursor]:
            return function(self.config, start if cursor is None else cursor)

        kind = type(
            function.__name__,
            (PollSource,),
            _named(function)
            | {"Config": _config_of(function, 0), "poll": poll, "every": every, "replayable": replayable},
        )
        setattr(kind, MARK, Mark(name, "source", tuple(aliases)))
        return kind

    return made


def _of_function(function: Callable[..., Any], parent: type[Any], method: str) -> type[Any]:
    """Return a subclass of Transform or Predicate whose method is the function."""
    takes_config = len(inspect.signature(function).parameters) == 2

    def call(self: Any, record: Record) -> Any:
        return function(record, self.config) if takes_config else function(record)

    config = _config_of(function, 1) if takes_config else Config
    return type(function.__name__, (parent,), _named(function) | {"Config": config, method: call})


def _config_of(function: Callable[..., Any], position: int) -> type[Config]:
    name = list(inspect.signature(function).parameters)[position]
    kind = get_type_hints(function).get(name)
    if not (inspect.isclass(kind) and issubclass(kind, Config)):
        raise TypeError(f"annotate the parameter {name} of {function.__name__} with a subclass of Config")
    return kind


def _named(function: Callable[..., Any]) -> dict[str, Any]:
    return {"__module__": function.__module__, "__doc__": function.__doc__, "__qualname__": function.__qualname__}
