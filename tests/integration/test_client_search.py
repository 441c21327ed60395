"""``barnabas.read(where=…)`` and ``consume`` with filters find the same records, and skip batches without a match."""

from __future__ import annotations

import json

import pytest

import barnabas
from barnabas.cli.main import main
from barnabas.client.blocking import Producer
from barnabas.client.errors import InvalidExpression
from barnabas.client.settings.producer import ProducerSettings
from barnabas.testing import Broker


def fill(broker: Broker, topic: str, **settings: str) -> None:
    given = {"bootstrap.servers": broker.bootstrap_servers, "batch.size": "2000", "linger.ms": "50", **settings}
    with Producer(ProducerSettings.of(given)) as producer:
        for number in range(1000):
            value = json.dumps({"id": number, "region": "eu" if number % 100 == 7 else "us"}).encode()
            producer.send_soon(topic, key=b"k%d" % number, value=value, headers=[("n", b"h%d" % number)])
        producer.flush()


@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ('value.region == "eu"', list(range(7, 1000, 100))),
        ('key == "k123"', [123]),
        ('headers.n == "h45" || key == "k46"', [45, 46]),
        ("value.id >= 998", [998, 999]),
        ('key == "nothing"', []),
    ],
)
def test_read_gives_the_rows_for_which_an_expression_holds(
    shared_broker: Broker, codec: str, where: str, ids: list[int]
) -> None:
    topic = f"search-{codec}"
    if codec not in _filled:
        fill(shared_broker, topic, **{"compression.type": codec})
        _filled.add(codec)
    table = barnabas.read(topic, bootstrap_servers=shared_broker.bootstrap_servers, where=where)
    assert sorted(json.loads(value)["id"] for value in table["value"].to_pylist()) == ids
    assert "headers" not in table.column_names


_filled: set[str] = set()


def test_an_expression_that_is_not_understood_is_refused(shared_broker: Broker) -> None:
    with pytest.raises(InvalidExpression, match="at 6"):
        barnabas.read("any", bootstrap_servers=shared_broker.bootstrap_servers, where="value.")


def test_consume_finds_a_key_and_an_expression(shared_broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    fill(shared_broker, "consumed")
    at = ["-b", shared_broker.bootstrap_servers, "--exit"]
    assert main(["consume", "consumed", "--key", "k500", *at]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == 500
    assert main(["consume", "consumed", "--filter", 'value.region == "eu" && value.id > 800', *at]) == 0
    assert sorted(json.loads(line)["id"] for line in capsys.readouterr().out.splitlines()) == [807, 907]
    assert main(["consume", "consumed", "-H", "n:h3", *at]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == 3
