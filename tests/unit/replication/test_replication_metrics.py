"""The numbers of replication are true: changes of ISRs and how far followers are behind."""

from __future__ import annotations

from trio import Trio

from barnabas.broker.metrics.replication import of_replication
from barnabas.observe.metrics import Number
from barnabas.testing.loop import simulate


def numbers(trio: Trio, broker_id: int) -> dict[str, Number]:
    families = of_replication(trio.brokers[broker_id].replication)
    return {family.name: sample.value for family in families for sample in family.samples}


def test_shrinks_expands_and_lag_are_shown() -> None:
    async def main() -> None:
        async with Trio(3) as trio:
            leader = trio.leader()
            assert await leader.acknowledged(trio.append(leader, b"one"))
            trio.isolate(3)
            trio.append(leader, b"two")
            await trio.settled(60_000)
            seen = numbers(trio, 1)
            assert seen["kafka_server_replicamanager_isrshrinks_total"] == 1
            assert seen["kafka_server_replicamanager_isrexpands_total"] == 0
            trio.heal()
            await trio.settled(5_000)
            assert numbers(trio, 1)["kafka_server_replicamanager_isrexpands_total"] == 1
            seen = numbers(trio, 2)
            assert seen["kafka_server_replicafetchermanager_maxlag"] == 0
            assert seen["kafka_server_fetcherlagmetrics_consumerlag"] == 0

    simulate(main, time_s_max=3600)
