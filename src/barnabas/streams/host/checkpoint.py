"""The note that an application leaves in its checkpoint: what its state was made by. Another topology is refused.

The state in a checkpoint belongs to one topology with one number of partitions: another one would read stores that it
does not have, or find keys in other tasks. The note also has the generation of the checkpoint, by which an old copy of
a checkpoint is told from the newest one, and where the application started if it was rebuilt from the cluster.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.streams.catalog.application import Application
from barnabas.streams.errors import StreamsError
from barnabas.streams.host.plan import Plan
from barnabas.streams.topology.description import describe
from barnabas.streams.topology.node import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CheckpointMismatch", "Note", "Origin", "read_note", "write_note"]

FORMAT: Final = 1
NAME: Final = "application"
DIFFERENCES_MAX: Final = 12  # lines of the difference that a message shows
HOW: Final = (
    "Run the application as it was; or give the new one another id, so that it runs beside the old one until its "
    "results are complete; or run `barnabas streams reset {}`, which deletes its state and offsets: it then reads its "
    "topics from the beginning and writes its results again"
)


class CheckpointMismatch(StreamsError):
    """The checkpoint was written by another application, topology or number of partitions."""


@dataclass(frozen=True)
class Origin:
    """Where a checkpoint that was rebuilt from the cluster began.

    offsets: topic -> partition -> offset from which the topics are read.
    ends: partition of the state topic -> offset up to which state is restored.
    """

    offsets: dict[str, dict[str, int]]
    ends: dict[str, int]


@dataclass(frozen=True)
class Note:
    application_id: str
    topology: str  # Kafka's description
    partitions: dict[str, int]
    state_partitions: int
    generation: str = ""
    origin: Origin | None = None
    format: int = FORMAT

    @classmethod
    def of(cls, topology: Topology, plan: Plan) -> Note:
        read = {topic: plan.partitions[reader.topic] for topic, reader in sorted(plan.readers.items())}
        return cls(topology.application_id, describe(topology), read, plan.state_partitions)

    @classmethod
    def parse(cls, text: str) -> Note:
        values: dict[str, Any] = json.loads(text)
        if values.get("format") != FORMAT:
            raise CheckpointMismatch(
                f"the checkpoint has format {values.get('format')}; this release reads format {FORMAT}. "
                f"{HOW.format(values.get('application_id'))}."
            )
        origin = values.pop("origin", None)
        return cls(**values, origin=None if origin is None else Origin(**origin))

    @classmethod
    def of_cluster(cls, known: Application) -> Note:
        """The note of the application as it was started last, wherever its checkpoint was."""
        return cls(known.application_id, known.topology, known.partitions, known.state_partitions, known.generation)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def check_generation(self, known: Application | None) -> None:
        """Raise CheckpointMismatch if the application was reset, or started from another checkpoint, after this one."""
        if known is None:
            raise CheckpointMismatch(
                f"the checkpoint has state of application {self.application_id}, and the cluster does not know it: "
                f"it was reset, or this is another cluster. Delete the checkpoint to start from the beginning"
            )
        if known.generation != self.generation:
            raise _checkpoint_outdated(self.application_id, known.checkpoint)

    def check(self, now: Note, what: str = "the checkpoint") -> None:
        """Raise CheckpointMismatch with the differences if ``now`` does not fit this note.

        what: what has the state, for the message.
        """
        how = HOW.format(now.application_id)
        if self.application_id != now.application_id:
            raise CheckpointMismatch(
                f"{what} is of application {self.application_id}, not of {now.application_id}. {how}."
            )
        if self.topology != now.topology:
            lines = difflib.unified_diff(self.topology.splitlines(), now.topology.splitlines(), lineterm="", n=0)
            changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
            more = f"\n  ... and {len(changed) - DIFFERENCES_MAX} more lines" if len(changed) > DIFFERENCES_MAX else ""
            shown = "\n  ".join(changed[:DIFFERENCES_MAX])
            raise CheckpointMismatch(
                f"{what} of {now.application_id} was written by another topology (- then, + now):\n"
                f"  {shown}{more}\n{how}. name= and store= keep names stable when operators are added."
            )
        if self.partitions != now.partitions:
            raise CheckpointMismatch(f"{_partition_differences(self.partitions, now.partitions, what)}. {how}.")


def _checkpoint_outdated(name: str, checkpoint: str) -> CheckpointMismatch:
    return CheckpointMismatch(
        f"application {name} was started from another checkpoint since: {checkpoint}. This checkpoint is out of date, "
        f"or the application runs twice. Stop the other one and delete this checkpoint; the application then continues "
        f"from the cluster"
    )


def _partition_differences(then: Mapping[str, int], now: Mapping[str, int], what: str) -> str:
    topics = [topic for topic in sorted({*then, *now}) if then.get(topic) != now.get(topic)]
    told = ", ".join(f"{topic} had {then.get(topic, 0)} partitions and has {now.get(topic, 0)}" for topic in topics)
    return f"{what} has state that is divided by partitions, and their number has changed: {told}"


def read_note(spark: SparkSession, home: str) -> Note | None:
    """The note in a checkpoint's directory, if there is one. Spark reads it where the directory is not a local one."""
    if "://" not in home:
        path = Path(home) / NAME / "note.json"
        return Note.parse(path.read_text()) if path.is_file() else None
    from pyspark.errors import AnalysisException

    try:
        rows = spark.read.text(f"{home}/{NAME}", wholetext=True).collect()
    except AnalysisException:
        return None
    return Note.parse(rows[0][0]) if rows else None


def write_note(spark: SparkSession, home: str, note: Note) -> None:
    if "://" not in home:
        path = Path(home) / NAME / "note.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(".new")
        fresh.write_text(note.to_json())
        fresh.replace(path)
        return
    spark.createDataFrame([(note.to_json(),)], "value string").coalesce(1).write.mode("overwrite").text(
        f"{home}/{NAME}"
    )
