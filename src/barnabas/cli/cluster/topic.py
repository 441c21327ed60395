"""``barnabas topic``: list, create, describe, analyze, alter, add-partitions, clone, trim, delete.

Each verb is a function below the table that names them all; the description of a topic, which asks for more than
metadata, is in ``topic_description.py``.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING, Final

from barnabas.cli.terminal.connection import attend, pairs, settings_of
from barnabas.cli.terminal.output import is_table, print_rows, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    complain,
    configure_verbs,
    confirm,
    join_offsets,
    matching,
    outcomes_of,
    report,
    run_verb,
)
from barnabas.client.cluster.cluster import Cluster
from barnabas.client.settings.client import Settings
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import TopicPartition
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin
    from barnabas.client.cluster.metadata import TopicMetadata


SECTIONS: Final = ("summary", "partitions", "configs")


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def prepare(words: list[str]) -> list[str]:
    return join_offsets(words)


def run(arguments: Namespace) -> None:
    run_verb(arguments)


# --- list -------------------------------------------------------------------------------------------------------------


def _configure_list(parser: ArgumentParser) -> None:
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="regular expressions that names must match")
    parser.add_argument("-i", "--internal", action="store_true", help="internal topics too")


def _list(arguments: Namespace) -> None:
    async def work() -> tuple[TopicMetadata, ...]:
        # The cluster itself knows this; the admin client would be imported for nothing.
        async with Cluster(settings_of(Settings, arguments)) as cluster:
            return await cluster.all_topics()

    topics = [topic for topic in attend(work()) if arguments.internal or not topic.is_internal]
    if arguments.patterns:
        topics = matching(arguments.patterns, topics, lambda topic: topic.name)
    rows = [(topic.name, len(topic.partitions), len(topic.partitions[0].replicas)) for topic in topics]
    print_rows(arguments, ("NAME", "PARTITIONS", "REPLICAS"), rows, right=("PARTITIONS", "REPLICAS"))


# --- create -----------------------------------------------------------------------------------------------------------


def _configure_create(parser: ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument("-p", "--partitions", type=int, default=-1, metavar="N", help="default: the broker's")
    parser.add_argument("-r", "--replicas", type=int, default=-1, metavar="N", help="default: the broker's")
    _add_configs(parser)
    parser.add_argument("--if-not-exists", action="store_true", help="an existing topic is no error")
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would work")


def _create(arguments: Namespace) -> None:
    from barnabas.client.admin.topics import CreatedTopic, NewTopic

    configs = pairs(arguments.configs)
    topics = [NewTopic(name, arguments.partitions, arguments.replicas, configs) for name in arguments.names]

    async def work() -> dict[str, CreatedTopic | ApiError]:
        async with admin_of(arguments) as admin:
            return await admin.create_topics(topics, validate_only=arguments.dry_run)

    def said(name: str, outcome: CreatedTopic | ApiError) -> Outcome:
        if not isinstance(outcome, ApiError):
            done = "would be created" if arguments.dry_run else "created"
            counts = {"partitions": outcome.partition_count, "replicas": outcome.replication_factor}
            return Outcome(
                name, done=f"{done}, partitions {counts['partitions']}, replicas {counts['replicas']}", details=counts
            )
        if arguments.if_not_exists and outcome.error is errors.TOPIC_ALREADY_EXISTS:
            return Outcome(name, done="exists")
        return Outcome(name, outcome)

    report(arguments, [said(*each) for each in attend(work()).items()])


# --- describe ---------------------------------------------------------------------------------------------------------


def _configure_describe(parser: ArgumentParser) -> None:
    _add_names(parser, may_match=True)
    parser.add_argument("-s", "--summary", action="store_true", help="name, id and counts; with others, these sections")
    parser.add_argument("-c", "--configs", action="store_true", help="settings")
    parser.add_argument("-p", "--partitions", action="store_true", help="partitions")
    parser.add_argument("-a", "--all-configs", action="store_true", help="settings left at their default too")


def _describe(arguments: Namespace) -> None:
    from barnabas.cli.cluster.topic_description import print_description
    from barnabas.ops.topics.description import Description, describe

    async def work() -> list[Description | ApiError]:
        async with admin_of(arguments) as admin:
            found = await admin.describe_topics(await _matched(admin, arguments))
            return [
                topic if isinstance(topic, ApiError) else await describe(admin, topic, arguments.all_configs)
                for topic in found.values()
            ]

    answers = attend(work())
    topics = [answer for answer in answers if not isinstance(answer, ApiError)]
    if not is_table(arguments):
        print_value(arguments, topics)
    else:
        for index, topic in enumerate(topics):
            if index:
                print()
            print_description(topic, _sections(arguments))
    complain(Outcome(None, answer) for answer in answers if isinstance(answer, ApiError))


def _sections(arguments: Namespace) -> frozenset[str]:
    """Those that were asked for, or all."""
    chosen = frozenset(name for name in SECTIONS if getattr(arguments, name))
    return chosen or frozenset(SECTIONS)


# --- alter, add-partitions, trim, delete ------------------------------------------------------------------------------


def _configure_alter(parser: ArgumentParser) -> None:
    _add_names(parser)
    _add_configs(parser)
    parser.add_argument(
        "-d", "--delete-config", dest="deleted", action="append", default=[], metavar="KEY", help="back to the default"
    )
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would work")


def _alter(arguments: Namespace) -> None:
    from barnabas.client.admin.configs import Change, Operation, Resource, ResourceKind

    changes = [Change(key, value) for key, value in pairs(arguments.configs).items()]
    changes += [Change(key, None, Operation.DELETE) for key in arguments.deleted]
    if not changes:
        raise Failure("nothing to change: say -c KEY=VALUE or -d KEY")

    async def work() -> dict[Resource, ApiError | None]:
        async with admin_of(arguments) as admin:
            wanted = {Resource(ResourceKind.TOPIC, name): changes for name in arguments.names}
            return await admin.alter_configs(wanted, validate_only=arguments.dry_run)

    altered = {resource.name: outcome for resource, outcome in attend(work()).items()}
    report(arguments, outcomes_of(altered, done="would be altered" if arguments.dry_run else "altered"))


def _configure_add_partitions(parser: ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument("-p", "--partitions", type=int, required=True, metavar="N", help="how many in all")


def _add_partitions(arguments: Namespace) -> None:
    async def work() -> dict[str, ApiError | None]:
        async with admin_of(arguments) as admin:
            return await admin.create_partitions(dict.fromkeys(arguments.names, arguments.partitions))

    report(arguments, outcomes_of(attend(work()), done=f"{arguments.partitions} partitions"))


def _configure_clone(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="TOPIC")
    parser.add_argument("clone", metavar="NEW", help="a topic with as many partitions and replicas, and its settings")
    parser.add_argument("--dry-run", action="store_true", help="only ask whether it would work")


def _clone(arguments: Namespace) -> None:
    from barnabas.client.admin.configs import ConfigSource, Resource, ResourceKind
    from barnabas.client.admin.topics import NewTopic

    async def work() -> Outcome:
        async with admin_of(arguments) as admin:
            topic = await admin.cluster.topic(arguments.name, timeout_ms=0)
            resource = Resource(ResourceKind.TOPIC, arguments.name)
            configs = (await admin.describe_configs([resource]))[resource]
            if isinstance(configs, ApiError):
                raise configs
            own = {each.name: each.value or "" for each in configs.values() if each.source is ConfigSource.TOPIC}
            replicas = len(topic.partitions[0].replicas)
            new = NewTopic(arguments.clone, len(topic.partitions), replicas, own)
            await admin.create_topic(new, validate_only=arguments.dry_run)
            done = "would be created" if arguments.dry_run else "created"
            return Outcome(arguments.clone, done=f"{done} as {arguments.name} is, without its records")

    report(arguments, [attend(work())])


def _configure_trim(parser: ArgumentParser) -> None:
    parser.add_argument("name", metavar="TOPIC")
    parser.add_argument(
        "-o", "--offset", type=int, required=True, metavar="N", help="drop what is before it; -1: everything"
    )
    parser.add_argument("-p", "--partition", type=int, action="append", metavar="N", help="only this one; repeatable")
    add_yes(parser)


def _trim(arguments: Namespace) -> None:
    before = "the end" if arguments.offset < 0 else f"offset {arguments.offset}"
    confirm(f"Drop the records of {arguments.name} before {before}?", arguments)

    async def work() -> dict[TopicPartition, int | ApiError]:
        async with admin_of(arguments) as admin:
            topic = await admin.cluster.topic(arguments.name, timeout_ms=0)
            chosen = arguments.partition or range(len(topic.partitions))
            places = {TopicPartition(arguments.name, index): arguments.offset for index in chosen}
            return await admin.delete_records(places)

    report(
        arguments,
        [
            Outcome(place, outcome)
            if isinstance(outcome, ApiError)
            else Outcome(place, done=f"begins at {outcome}", details={"log_start_offset": outcome})
            for place, outcome in attend(work()).items()
        ],
    )


def _configure_delete(parser: ArgumentParser) -> None:
    _add_names(parser, may_match=True)
    add_yes(parser)


def _delete(arguments: Namespace) -> None:
    async def find() -> list[str]:
        async with admin_of(arguments) as admin:
            return await _matched(admin, arguments)

    async def work() -> dict[str, ApiError | None]:
        async with admin_of(arguments) as admin:
            return await admin.delete_topics(names)

    names = attend(find()) if arguments.regex else arguments.names
    confirm(f"Delete {', '.join(names)} and all records?", arguments)

    report(arguments, outcomes_of(attend(work()), done="deleted"))


# --- analyze ----------------------------------------------------------------------------------------------------------


def _configure_analyze(parser: ArgumentParser) -> None:
    from barnabas.cli.cluster import topic_analysis

    topic_analysis.configure(parser)


def _analyze(arguments: Namespace) -> None:
    from barnabas.cli.cluster import topic_analysis

    topic_analysis.run(arguments)


# --- what they share --------------------------------------------------------------------------------------------------


VERBS: Final = {
    "list": Verb(_configure_list, _list, "list topics"),
    "create": Verb(_configure_create, _create, "create topics"),
    "describe": Verb(_configure_describe, _describe, "show partitions, offsets and settings of topics"),
    "analyze": Verb(_configure_analyze, _analyze, "show rates, sizes of batches, codecs and producers"),
    "alter": Verb(_configure_alter, _alter, "change settings of topics; what is not named stays as it is"),
    "add-partitions": Verb(_configure_add_partitions, _add_partitions, "grow topics; keys move to other partitions"),
    "clone": Verb(_configure_clone, _clone, "create a topic that is as another is, without its records"),
    "trim": Verb(_configure_trim, _trim, "drop the oldest records of a topic"),
    "delete": Verb(_configure_delete, _delete, "delete topics and all of their records"),
}


def _add_names(parser: ArgumentParser, *, may_match: bool = False) -> None:
    parser.add_argument("names", nargs="+", metavar="TOPIC")
    if may_match:
        parser.add_argument("-r", "--regex", action="store_true", help="topics are regular expressions")


async def _matched(admin: Admin, arguments: Namespace) -> list[str]:
    """The topics that are meant; with ``--regex`` those that match as a whole, internal ones only by name."""
    if not arguments.regex:
        return list(arguments.names)
    topics = [topic.name for topic in await admin.cluster.all_topics() if not topic.is_internal]
    found = matching([f"^(?:{pattern})$" for pattern in arguments.names], topics, str)
    if not found:
        raise Failure("no topic matches")
    return found


def _add_configs(parser: ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--config", dest="configs", action="append", default=[], metavar="KEY=VALUE", help="a topic setting"
    )
