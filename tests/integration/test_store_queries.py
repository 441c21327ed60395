"""Queries of stores over the network, without Spark: in Python, on the command line and over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

pytest.importorskip("msgspec")
pytest.importorskip("pyspark")  # the host's modules make the changelogs

import stores_fed
from stores_fed import Fed, filled, partition_of, shop

from barnabas import NewTopic, Settings, blocking
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.model.ids import TopicPartition
from barnabas.spark.connector.link import link
from barnabas.streams import StreamsError, Windowed
from barnabas.streams.catalog.application import Application
from barnabas.streams.catalog.topic import find, publish
from barnabas.streams.queries.reader import StoreTooLarge


@pytest.fixture(scope="module")
def fed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fed]:
    with filled(tmp_path_factory.mktemp("stores")) as made:
        yield made


def test_a_key_is_read_from_one_partition_and_the_answer_has_its_position(fed: Fed) -> None:
    with shop.store("counts", bootstrap_servers=fed.servers) as counts:
        answer = counts.get("a")
        assert (answer.value, answer.timestamp, answer.partition) == (3, 5_100, partition_of("a"))
        assert answer.position == {"sales": {answer.partition: fed.offset("sales", "a")}}
        assert set(counts._reader._partitions) == {answer.partition}
        assert counts.get("nobody").value is None
        assert [(row.key, row.value) for row in counts.range("a", "c")] == [("a", 3), ("b", 1), ("c", 1)]
        assert [(row.key, row.value) for row in counts.all(limit=2)] == [("a", 3), ("b", 1)]
        assert [row.key for row in counts.range("b", "bz")] == ["b"]
        assert [row.key for row in counts.range("b", limit=1)] == ["b"]
        assert set(counts.all().positions) == {0, 1}


def test_later_queries_see_later_records(fed: Fed) -> None:
    with shop.store("counts", bootstrap_servers=fed.servers) as counts:
        assert counts.get("later").value is None
        fed.send("sales", "later", "x", 5_200)
        answer = counts.get("later")
        assert answer.value == 1
        fed.send("sales", "later", "x", 5_300)
        newer = counts.get("later")
        assert newer.value == 2
        partition = answer.partition
        assert newer.position["sales"][partition] == answer.position["sales"][partition] + 1


def test_windows_sessions_versions_stores_of_processors_and_global_tables(fed: Fed) -> None:
    servers = fed.servers
    with shop.store("by-second", bootstrap_servers=servers) as windows:
        rows = windows.fetch("a")
        assert [(row.key, row.value) for row in rows] == [
            (Windowed("a", 0, 1_000), 1),
            (Windowed("a", 1_000, 2_000), 1),
            (Windowed("a", 5_000, 6_000), 1),
        ]
        assert [row.key.start for row in windows.fetch("a", 1, 4_999)] == [1_000]
        assert [row.key.key for row in windows.range(start=2_000, end=2_000)] == ["b"]
        with pytest.raises(StreamsError, match=r"store by-second has windows: use fetch"):
            windows.get("a")
    with shop.store("visits", bootstrap_servers=servers) as visits:
        assert [(row.key.start, row.key.end) for row in visits.fetch("a")] == [
            (100, 100),
            (1_900, 1_900),
            (5_100, 5_100),
        ]
    with shop.store("prices", bootstrap_servers=servers) as prices:
        assert [prices.get("tea", at=at).value for at in (500, 1_500, 2_000, 3_500, 9_000)] == [None, 1, 2, None, 4]
        assert prices.get("tea").value == 4
        versions = prices.versions("tea", 1_500, 2_500)
        assert [tuple(each) for each in versions] == [(1, 1_000, 2_000), (2, 2_000, 3_000)]
        assert prices.versions("tea")[-1].valid_to is None
        assert [row.value for row in prices.all()] == [4]
    with shop.store("newest", bootstrap_servers=servers) as newest:
        assert newest.get("a").value == ["y", "z"]
        with pytest.raises(StreamsError, match="has no versions"):
            newest.get("a", at=1)
    with shop.store("rates", bootstrap_servers=servers) as rates:
        answer = rates.get("EUR")
        assert (answer.value, answer.position) == (1.5, {"rates": {0: 1}})


def test_stores_that_are_missing_or_too_large_are_refused(fed: Fed) -> None:
    with pytest.raises(StreamsError, match=r"no named store sums; its named stores are: counts, .*store="):
        shop.store("sums", bootstrap_servers=fed.servers)
    with (
        shop.store("counts", bootstrap_servers=fed.servers, bytes_max=150) as counts,
        pytest.raises(StoreTooLarge, match="store counts needs more than 150 bytes"),
    ):
        counts.all()


def barnabas(fed: Fed, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "barnabas", "streams", *words, "-b", fed.servers]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_the_command_line_reads_stores_of_an_application_it_has_no_code_of(fed: Fed) -> None:
    found = barnabas(fed, "get", "shop", "counts", "b")
    assert (found.stdout, found.returncode) == ("1\n", 0), found.stderr
    assert f"position: sales-{partition_of('b')}: " in found.stderr
    assert barnabas(fed, "get", "shop", "by-second", "a", "--since", "1000", "-o", "json").stdout == (
        '[{"key": "a", "start": 1000, "end": 2000, "value": 1}, {"key": "a", "start": 5000, "end": 6000, "value": 1}]\n'
    )
    assert barnabas(fed, "get", "shop", "prices", "tea", "--at", "2500").stdout == "2\n"
    assert "2000        3000      2\n" in barnabas(fed, "get", "shop", "prices", "tea", "--versions").stdout
    assert barnabas(fed, "get", "shop", "counts", "--from", "b", "--to", "c", "--no-headers").stdout.split()[:2] == [
        "b",
        "1",
    ]
    path = Path(stores_fed.__file__)
    assert barnabas(fed, "get", str(path), "newest", "a", "-o", "json").stdout == '["y", "z"]\n'
    missing = barnabas(fed, "get", "shop", "counts", "nobody")
    assert missing.returncode == 1
    assert "barnabas: store counts has no row with key nobody\n" in missing.stderr
    assert "no named store sums" in barnabas(fed, "get", "shop", "sums", "a").stderr
    assert "knows no application other; it knows: shop" in barnabas(fed, "get", "other", "sums", "a").stderr


def test_applications_are_listed_and_described(fed: Fed, tmp_path: Path) -> None:
    (listed,) = json.loads(barnabas(fed, "list", "-o", "json").stdout)
    assert (listed["application"], listed["state"], listed["tasks"]) == ("shop", "stopped", 4)
    text = barnabas(fed, "describe", "shop").stdout
    assert "store counts     timestamped, keys str, values json, topic shop-counts-changelog\n" in text
    assert "Sub-topology: 0" in text
    assert "How it runs:" in text
    path = tmp_path / "app.py"
    path.write_text("from barnabas.streams import App\napp = App('copy')\napp.stream('in').to('out')\n")
    assert "Sink: KSTREAM-SINK-0000000001 (topic: out)" in barnabas(fed, "describe", str(path)).stdout


def test_a_reset_deletes_internal_topics_offsets_checkpoint_and_entry(fed: Fed, tmp_path: Path) -> None:
    checkpoint = tmp_path / "gone"
    (checkpoint / "application").mkdir(parents=True)
    topics = ["gone-x-changelog", "gone-task-state-changelog"]
    entry = Application(
        "gone", "", {}, 1, 1, "g", str(checkpoint), [], topics, is_atomic=True, started_ms=0, execution=""
    )
    connection = link(ConsumerSettings, {"bootstrap.servers": fed.servers})
    connection.run(publish(connection.cluster, entry))
    with blocking.Admin(Settings.of({"bootstrap.servers": fed.servers})) as admin:
        for topic in [*topics, "gone-output"]:
            admin.create_topic(NewTopic(topic, 1))
        admin.alter_group_offsets("gone", {TopicPartition("gone-output", 0): 0})
        admin.alter_group_offsets("gone.commits", {TopicPartition("gone-output", 0): 0})
        admin.alter_group_offsets("gone-away", {TopicPartition("gone-output", 0): 0})
        shown = barnabas(fed, "reset", "gone", "--dry-run").stdout
        assert shown.splitlines() == [
            "topic gone-task-state-changelog",
            "topic gone-x-changelog",
            "group gone",
            "group gone.commits",
            f"checkpoint {checkpoint}",
        ]
        assert "--yes" in barnabas(fed, "reset", "gone").stderr
        assert checkpoint.exists()
        assert "gone was reset; output topics were not changed\n" in barnabas(fed, "reset", "gone", "--yes").stdout
        assert not checkpoint.exists()
        left = {topic.name for topic in admin.list_topics()}
        assert {name for name in left if name.startswith("gone")} == {"gone-output"}
        assert {each.group_id for each in admin.list_groups()} & {"gone", "gone.commits", "gone-away"} == {"gone-away"}
    assert "knows no application gone" in barnabas(fed, "reset", "gone").stderr
    assert connection.run(find(connection.cluster, "gone")) is None


@pytest.fixture(scope="module")
def url(fed: Fed) -> Iterator[str]:
    command = [sys.executable, "-m", "barnabas", "streams", "serve", "--port", "0", "-b", fed.servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("READY "), line
            yield line.split()[1]
        finally:
            process.terminate()


def ask(url: str, path: str) -> Any:
    try:
        with urlopen(url + path, timeout=60) as response:
            return json.loads(response.read())
    except HTTPError as error:
        return error.code, json.loads(error.read())["message"]


def test_metrics_have_the_names_of_kafka_streams(fed: Fed, url: str) -> None:
    with urlopen(url + "/metrics", timeout=60) as response:
        page = response.read().decode()
    task = f'client_id="shop",thread_id="shop-StreamThread-1",task_id="0_{partition_of("a")}"'
    source = f'{task},processor_node_id="KSTREAM-SOURCE-0000000000",topic_name="sales"'
    lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    sent = str(fed.offset("sales", "a"))
    assert lines[f"kafka_streams_stream_topic_metrics_records_consumed_total{{{source}}}"] == sent
    assert lines[f"kafka_streams_stream_processor_node_metrics_process_total{{{source}}}"] == sent
    assert lines[f"kafka_streams_stream_task_metrics_process_total{{{task}}}"] == sent
    assert lines[f"kafka_streams_stream_task_metrics_dropped_records_total{{{task}}}"] == "0"
    keys = f'kafka_streams_stream_state_metrics_estimate_num_keys{{{task},in_memory_state_id="counts"}}'
    assert int(lines[keys]) >= 3
    sinks = [name for name in lines if "bytes_produced_total" in name and 'topic_name="sale-counts"' in name]
    assert all(int(lines[name]) > 0 for name in sinks)
    assert sinks


def test_stores_are_read_over_http(fed: Fed, url: str) -> None:
    assert ask(url, "/streams")[0]["application"] == "shop"
    assert ask(url, "/streams/shop")["stores"][0]["name"] == "counts"
    answer = ask(url, "/streams/shop/stores/counts/c")
    assert (answer["value"], answer["timestamp"]) == (1, 5_000)
    assert answer["position"]["sales"][str(answer["partition"])] >= 1
    rows = ask(url, "/streams/shop/stores/counts?from=a&to=b&limit=1")
    assert [row["key"] for row in rows["rows"]] == ["a"]
    assert rows["is_complete"] is False
    assert set(rows["positions"]) == {"0", "1"}
    windows = ask(url, "/streams/shop/stores/by-second/a?since=5000")
    assert windows["rows"] == [{"key": {"key": "a", "start": 5_000, "end": 6_000}, "value": 1, "timestamp": 5_100}]
    assert ask(url, "/streams/shop/stores/prices/tea?at=1500")["value"] == 1
    assert len(ask(url, "/streams/shop/stores/prices/tea?versions=true")["rows"]) == 3
    fed.send("sales", "over http", "x", 5_400)
    assert ask(url, "/streams/shop/stores/counts/over%20http")["value"] == 1
    for path, code, message in (
        ("/streams/shop/stores/counts/nobody", 404, "no row with key nobody"),
        ("/streams/shop/stores/none/a", 404, "no named store none"),
        ("/streams/none/stores/counts/a", 404, "knows no application none"),
        ("/streams/shop/stores/counts?limit=0", 400, "pass a number from 1 to"),
        ("/streams/shop/stores/by-second/a?since=x", 400, "not a whole number"),
        ("/streams/shop/stores/counts/a?at=1", 400, "has no versions"),
    ):
        status, text = ask(url, path)
        assert (status, message in text) == (code, True), (path, text)
