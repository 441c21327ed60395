"""``barnabas broker``: start one broker of a cluster; list, decommission and forget those that are there.

What is needed of a cluster of several machines is in a broker's file of settings; starting it is ``up.py``'s, and
``barnabas up --brokers`` starts its children by this command too.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.terminal.connection import attend
from barnabas.cli.terminal.output import NOBODY, is_table, print_table, print_value
from barnabas.cli.terminal.verbs import (
    Outcome,
    Verb,
    add_yes,
    admin_of,
    configure_verbs,
    confirm,
    nothing_more,
    report,
    run_verb,
)
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.brokers import ClusterDescription


def configure(parser: ArgumentParser) -> None:
    configure_verbs(parser, VERBS)


def run(arguments: Namespace) -> int:
    run_verb(arguments)
    return int(getattr(arguments, "code", 0))  # only a broker that ran here ends with one of its own


# --- start --------------------------------------------------------------------------------------------------------


def _configure_start(parser: ArgumentParser) -> None:
    parser.add_argument("--config", type=Path, required=True, metavar="FILE", help="server.properties or TOML")
    parser.add_argument(
        "--new-cluster", action="store_true", help="found a cluster if the data directory is empty: on one broker only"
    )
    parser.add_argument(
        "--set", action="append", default=[], dest="overrides", metavar="KEY=VALUE", help="a broker setting; repeatable"
    )


def _start(arguments: Namespace) -> None:
    import gc

    from barnabas.cli.serve.up import up

    gc.freeze()  # as in ``start``
    gc.enable()
    overrides = list(arguments.overrides)
    if arguments.new_cluster:
        overrides.append("barnabas.new.cluster=true")
    arguments.code = up(
        port=None, host=None, data_dir=None, ephemeral=False, config=arguments.config, overrides=overrides
    )


# --- list, decommission, forget -----------------------------------------------------------------------------------


def _list(arguments: Namespace) -> None:
    async def work() -> ClusterDescription:
        async with admin_of(arguments) as admin:
            return await admin.describe_cluster()

    cluster = attend(work())
    if not is_table(arguments):
        rows = [{**broker._asdict(), "is_fenced": broker.id in cluster.fenced} for broker in cluster.brokers]
        print_value(arguments, rows)
        return
    print_table(
        ("BROKER", "ADDRESS", "RACK", "STATE"),
        [
            (
                broker.id,
                f"{broker.host}:{broker.port}",
                broker.rack or NOBODY,
                "fenced" if broker.id in cluster.fenced else "up",
            )
            for broker in cluster.brokers
        ],
        right=("BROKER",),
        arguments=arguments,
    )


def _configure_one(parser: ArgumentParser) -> None:
    parser.add_argument("broker", type=int, metavar="ID")
    add_yes(parser)


def _decommission(arguments: Namespace) -> None:
    from barnabas.cli.cluster.reassign import alive, move, placement, planned

    broker: int = arguments.broker

    async def work() -> None:
        async with admin_of(arguments) as admin:
            racks = await alive(admin)
            others = {other: rack for other, rack in racks.items() if other != broker}
            now = {key: replicas for key, replicas in (await placement(admin)).items() if broker in replicas}
            if now:
                targets = planned(now, others, None)
                confirm(f"Move {len(targets)} partitions away from broker {broker}?", arguments)
                await move(admin, targets, is_waiting=True)

    attend(work(), is_long=True)
    report(
        arguments, [Outcome(f"broker {broker}", done=f"holds nothing: stop it, then barnabas broker forget {broker}")]
    )


def _forget(arguments: Namespace) -> None:
    async def work() -> None:
        async with admin_of(arguments) as admin:
            cluster = await admin.describe_cluster()
            if any(each.id == arguments.broker and each.id not in cluster.fenced for each in cluster.brokers):
                raise Failure(f"broker {arguments.broker} is running: stop it first")
            # Not before it is stopped: a controller that runs would join the quorum again.
            for voter in (await admin.describe_quorum()).voters:
                if voter.id == arguments.broker:
                    await admin.remove_voter(voter.id, voter.directory_id)
            await admin.unregister_broker(arguments.broker)

    confirm(f"Forget broker {arguments.broker}?", arguments)
    attend(work())
    report(arguments, [Outcome(f"broker {arguments.broker}", done="forgotten")])


VERBS = {
    "start": Verb(_configure_start, _start, "run one broker of a cluster"),
    "list": Verb(nothing_more, _list, "show the brokers"),
    "decommission": Verb(_configure_one, _decommission, "move everything away from a broker"),
    "forget": Verb(_configure_one, _forget, "take a broker that is gone for good out of the cluster"),
}
