"""The note that an application leaves in its checkpoint: what its state was made by. Another topology is refused.

The state in a checkpoint belongs to one topology with one number of partitions: another one would read stores that it
does not have, or find keys in other tasks.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from barnabas.streams.errors import StreamsError
from barnabas.streams.host.plan import Plan
from barnabas.streams.topology.description import describe
from barnabas.streams.topology.node import Topology

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CheckpointMismatch", "Note", "read_note", "write_note"]

FORMAT: Final = 1
NAME: Final = "application"
DIFFERENCES_MAX: Final = 12  # lines of the difference that a message shows
HOW: Final = (
    "Run the application as it was, or start with another checkpoint directory, "
    "which reads the topics from the beginning"
)


class CheckpointMismatch(StreamsError):
    """The checkpoint was written by another application, topology or number of partitions."""


@dataclass(frozen=True)
class Note:
    application_id: str
    topology: str  # Kafka's description
    partitions: dict[str, int]
    state_partitions: int
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
                f"the checkpoint has format {values.get('format')}; this release reads format {FORMAT}. {HOW}."
            )
        return cls(**values)

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def check(self, now: Note) -> None:
        """Raise CheckpointMismatch with the differences if ``now`` does not fit this note."""
        if self.application_id != now.application_id:
            raise CheckpointMismatch(
                f"the checkpoint is of application {self.application_id}, not of {now.application_id}. {HOW}."
            )
        if self.topology != now.topology:
            lines = difflib.unified_diff(self.topology.splitlines(), now.topology.splitlines(), lineterm="", n=0)
            changed = [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]
            more = f"\n  ... and {len(changed) - DIFFERENCES_MAX} more lines" if len(changed) > DIFFERENCES_MAX else ""
            shown = "\n  ".join(changed[:DIFFERENCES_MAX])
            raise CheckpointMismatch(
                f"the checkpoint of {now.application_id} was written by another topology (- then, + now):\n"
                f"  {shown}{more}\n{HOW}; name= and store= keep names stable when operators are added."
            )
        if self.partitions != now.partitions:
            raise CheckpointMismatch(f"{_partition_differences(self.partitions, now.partitions)}. {HOW}.")


def _partition_differences(then: Mapping[str, int], now: Mapping[str, int]) -> str:
    topics = [topic for topic in sorted({*then, *now}) if then.get(topic) != now.get(topic)]
    told = ", ".join(f"{topic} had {then.get(topic, 0)} partitions and has {now.get(topic, 0)}" for topic in topics)
    return f"the state in the checkpoint is divided by partitions, which have changed: {told}"


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
