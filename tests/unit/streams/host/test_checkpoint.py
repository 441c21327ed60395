"""The note of a checkpoint: what is refused, with what changed and what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.streams import App
from barnabas.streams.catalog.application import Application, store_entries
from barnabas.streams.errors import TopologyError
from barnabas.streams.host.checkpoint import CheckpointMismatch, Note, Origin, read_note, write_note
from barnabas.streams.host.plan import make_plan
from barnabas.streams.host.topics import internal_topics

app = App("words")
app.stream("lines", value=str).group_by_key().count(store="counts").to_stream().to("out")
NOTE = Note.of(app.topology(), make_plan(app.topology(), {"lines": 2}, partitions_max=2))
KNOWN = Application("words", NOTE.topology, {"lines": 2}, 2, 2, "g1", "/c", [], [], is_atomic=True, started_ms=0)


def test_another_topology_is_refused_with_the_differences_and_what_to_do() -> None:
    other = App("words")
    other.stream("lines", value=str).filter(bool).group_by_key().count(store="totals").to_stream().to("out")
    now = Note.of(other.topology(), make_plan(other.topology(), {"lines": 2}, partitions_max=2))
    with pytest.raises(CheckpointMismatch) as refused:
        NOTE.check(now)
    message = str(refused.value)
    assert "the checkpoint of words was written by another topology (- then, + now):" in message
    assert "stores: [counts]" in message
    assert "stores: [totals]" in message
    assert "give the new one another id" in message
    assert "`barnabas streams reset words`" in message


def test_another_number_of_partitions_is_refused_with_both_numbers() -> None:
    with pytest.raises(CheckpointMismatch, match=r"lines had 2 partitions and has 3.*streams reset words"):
        NOTE.check(replace(NOTE, partitions={"lines": 3}))


def test_a_checkpoint_that_is_not_the_newest_or_of_an_application_that_was_reset_is_refused() -> None:
    note = replace(NOTE, generation="g1")
    note.check_generation(KNOWN)
    with pytest.raises(CheckpointMismatch, match="started from another checkpoint since: /c"):
        replace(note, generation="g0").check_generation(KNOWN)
    with pytest.raises(CheckpointMismatch, match=r"was reset, or this is another cluster. Delete the checkpoint"):
        note.check_generation(None)


def test_a_note_is_read_as_it_was_written(tmp_path: Path) -> None:
    note = replace(NOTE, generation="g1", origin=Origin({"lines": {"0": 7}}, {"0": 12}))
    spark = cast("Any", None)  # is not used for a local directory
    assert read_note(spark, str(tmp_path)) is None
    write_note(spark, str(tmp_path), note)
    assert read_note(spark, str(tmp_path)) == note
    assert Note.of_cluster(KNOWN) == replace(NOTE, generation="g1")


def test_stores_cannot_have_the_names_of_the_topics_of_tasks() -> None:
    taken = App("taken")
    taken.stream("lines", value=str).group_by_key().count(store="task-state").to_stream().to("out")
    plan = make_plan(taken.topology(), {"lines": 1}, partitions_max=1)
    with pytest.raises(TopologyError, match="stores cannot have the names task-state and task-metrics"):
        internal_topics(taken.topology(), plan)


def test_entries_of_applications_survive_encoding() -> None:
    known = replace_stores(KNOWN)
    assert Application.decoded(known.encoded()) == known


def replace_stores(known: Application) -> Application:
    fields = {name: getattr(known, name) for name in known.__struct_fields__}
    return Application(**fields | {"stores": store_entries(app.topology())})
