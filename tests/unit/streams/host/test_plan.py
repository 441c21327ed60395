"""How topologies become stages and tasks."""

from __future__ import annotations

import re

import pytest

from barnabas.streams import App, Processor, Record
from barnabas.streams.errors import TopologyError
from barnabas.streams.host.checkpoint import CheckpointMismatch, Note
from barnabas.streams.host.labels import labels, partition_of
from barnabas.streams.host.plan import Plan, TaskPlace, make_plan


def plan_of(app: App, *, partitions_max: int = 8, state_partitions: int | None = None, **partitions: int) -> Plan:
    return make_plan(app.topology(), partitions, partitions_max=partitions_max, state_partitions=state_partitions)


def counted() -> App:
    app = App("app")
    app.stream("lines", value=str).group_by(lambda word: word).count().to_stream().to("counts")
    return app


def test_a_stateless_part_before_a_repartition_needs_no_stage() -> None:
    plan = plan_of(counted(), lines=3)
    assert plan.stages == {0: -1, 1: 0}
    assert plan.stage_count == 1
    assert not plan.is_atomic, "tasks send records to each other"
    app = App("app")
    app.stream("lines").filter(lambda value: value).to("out")
    assert plan_of(app, lines=3).stage_count == 0
    assert plan_of(app, lines=3).is_atomic


def test_parts_that_read_by_a_pattern_or_run_processors_have_a_stage() -> None:
    app = App("app")
    app.stream(re.compile("l.*")).to("out")
    assert plan_of(app, lines=3).stage_count == 1


def test_a_repartition_makes_a_second_stage_with_tasks_of_its_own() -> None:
    app = App("app")
    app.stream("lines", value=str).group_by_key().count().to_stream().group_by(lambda count: count).count()
    plan = plan_of(app, lines=3)
    assert plan.stages == {0: 0, 1: 1}
    assert plan.tasks == tuple(TaskPlace(number, partition) for number in (0, 1) for partition in range(3))
    assert not plan.looped


def test_records_find_the_task_of_their_partition() -> None:
    plan = plan_of(counted(), lines=3)
    reader = plan.reader("lines")
    assert plan.tasks[plan.task(reader.number, 2)] == TaskPlace(0, 2)
    with pytest.raises(TopologyError, match="partition 3 is new"):
        plan.task(reader.number, 3)
    with pytest.raises(TopologyError, match="no sub-topology reads topic other"):
        plan.reader("other")


def test_a_label_leads_back_to_its_task_and_tasks_are_spread_evenly() -> None:
    plan = plan_of(counted(), lines=4, partitions_max=4)
    assert [plan.index(label) for label in plan.labels] == list(range(8))
    assert plan.state_partitions == 4
    found = [partition_of(label, 4) for label in plan.labels]
    assert sorted(found) == sorted([0, 1, 2, 3] * 2)


@pytest.mark.parametrize(("tasks", "partitions"), [(1, 1), (4, 2), (5, 8), (40, 12)])
def test_no_partition_has_more_than_one_task_more_than_another(tasks: int, partitions: int) -> None:
    found = [partition_of(label, partitions) for label in labels(tasks, partitions)]
    counts = [found.count(each) for each in range(partitions)]
    assert max(counts) - min(counts) <= 1


def test_a_checkpoint_decides_the_number_of_state_partitions() -> None:
    assert plan_of(counted(), lines=4, partitions_max=64).state_partitions == 8
    assert plan_of(counted(), lines=4, partitions_max=64, state_partitions=3).state_partitions == 3


def test_the_answers_of_a_foreign_key_join_are_a_topic_of_the_cluster() -> None:
    app = App("app")
    left, right = app.table("left", value=str), app.table("right", value=str)
    left.join(right, lambda one, other: one + other, by=lambda one: one).to_stream().to("out")
    plan = plan_of(app, left=2, right=2)
    assert len(plan.looped) == 1
    assert set(plan.stages.values()) == {0, 1}


def test_a_global_table_is_copied_to_the_tasks_that_join_it() -> None:
    app = App("app")
    prices = app.global_table("prices", value=int)
    app.stream("sales", value=str).join(prices, lambda sale, price: price, by=lambda sale: sale).to("priced")
    app.stream("others", value=str).to("copy")
    plan = plan_of(app, prices=5, sales=2, others=3)
    assert [plan.tasks[index] for index in plan.copies["prices"]] == [
        place for place in plan.tasks if place.number == plan.reader("sales").number
    ]
    assert len(plan.tasks) == 5


class Pulse(Processor[str, str, str, str]):
    def init(self) -> None:
        self.schedule("3s", self.tell, by="wall_clock")

    def process(self, record: Record[str, str]) -> None:
        self.forward(record)

    def tell(self, now: int) -> None:
        pass


def test_only_tasks_with_wall_clock_punctuators_get_ticks() -> None:
    app = App("app")
    app.stream("beats", value=str).process(Pulse).to("pulse")
    app.stream("others", value=str).to("copy")
    plan = plan_of(app, beats=2, others=2)
    assert plan.tick_ms == 3000
    assert {plan.tasks[index].number for index in plan.ticked} == {plan.reader("beats").number}
    assert plan_of(counted(), lines=1).tick_ms is None


def test_a_checkpoint_of_another_topology_or_number_of_partitions_is_refused_with_what_changed() -> None:
    app = counted()
    note = Note.of(app.topology(), plan_of(app, lines=2))
    note.check(Note.parse(note.to_json()))
    with pytest.raises(CheckpointMismatch, match="lines had 2 partitions and has 4"):
        note.check(Note.of(app.topology(), plan_of(app, lines=4)))
    changed = App("app")
    changed.stream("lines", value=str).filter(bool).group_by(lambda word: word).count().to_stream().to("counts")
    with pytest.raises(CheckpointMismatch, match=r"(?s)written by another topology.*\n  \+ .*KSTREAM-FILTER"):
        note.check(Note.of(changed.topology(), plan_of(changed, lines=2)))
    other = App("other")
    other.stream("lines", value=str).to("copy")
    with pytest.raises(CheckpointMismatch, match="is of application app, not of other"):
        note.check(Note.of(other.topology(), plan_of(other, lines=2)))
