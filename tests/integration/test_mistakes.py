"""What people get wrong on the command line: always one line, which says what to do, and never the exit code 0."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Authority

from barnabas.cli.main import main
from barnabas.testing import Broker

PLAIN = ("-X", "sasl.mechanism=PLAIN", "-X", "sasl.username=ada", "-X", "sasl.password=x")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    authority = Authority(tmp_path_factory.mktemp("authority"))
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": ("org.apache.kafka.common.security.plain.PlainLoginModule required user_ada=right;"),
        "ssl.keystore.location": str(authority.issue("/CN=localhost").store),
    }
    with Broker(settings=settings) as running:
        assert main(["topic", "create", "orders", "-b", running.address_of("PLAINTEXT")]) == 0
        yield running


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("topics",), "did you mean 'topic'?"),
        (("topic", "lst"), "did you mean 'list'?"),
        (("topic", "ls"), "did you mean 'list'?"),
        (("topic", "list", "--outptu", "json"), "did you mean '--output'? `barnabas topic list --help`"),
        (("config", "unset", "topic", "orders", "retention.ms"), "did you mean 'delete'?"),
        (("up", "--prot", "9093"), "did you mean '--port'?"),
        (("produce", "orders", "-v", "x", "-f", "jsonn"), "neither json nor csv"),
        (("topic", "create"), "`barnabas topic create --help` says"),
        (("topic", "create", "a b"), "only ASCII letters"),
        (("topic", "create", "x", "-r", "3"), "more replicas than the cluster has brokers"),
        (("topic", "create", "orders"), "`--if-not-exists`"),
        (("topic", "describe", "nope"), "`barnabas topic list` shows"),
        (("topic", "analyze", "nope"), "`barnabas topic list` shows"),
        (("topic", "trim", "orders", "-o", "1"), "say --yes"),
        (("produce", "nope", "-v", "x", "-f", "%q"), "a line is made of %k"),
        (("produce", "-v", "x"), "name a topic"),
        (("consume", "nope", "--exit"), "`barnabas topic list` shows"),
        (("consume", "orders", "-o", "nonsense"), "say start, end, 42"),
        (("consume", "orders", "-f", "%z"), "`barnabas consume --help` lists what does"),
        (("consume", "orders", "--filter", "value.total >"), "something is missing"),
        (("consume", "orders", "-g", "g", "-p", "0"), "do not go together"),
        (("group", "describe", "nope"), "`barnabas group list` shows"),
        (("group", "delete", "nope", "-y"), "`barnabas group list` shows"),
        (("group", "seek", "nope", "--to", "start"), "name topics with --topic"),
        (("group", "peek", "nope"), "`barnabas group list` shows"),
        (("config", "get", "topic", "nope"), "`barnabas topic list` shows"),
        (("config", "set", "topic", "orders", "retention.ms=abc"), "is not a whole number"),
        (("config", "set", "topic", "orders", "retenion.ms=1"), "did you mean 'retention.ms'?"),
        (("config", "set", "broker", "all", "num.io.thread=1"), "did you mean 'num.io.threads'?"),
        (("config", "set", "broker", "1", "num.io.thread=1"), "did you mean 'num.io.threads'?"),
        (("config", "set", "broker", "1", "log.dirs=x"), "put it into the broker's file"),
        (("config", "set", "broker", "1", "listeners=x"), "is not NAME://host:port"),
        (("txn", "describe", "nope"), "`barnabas txn list` shows"),
        (("acl", "list"), "give the brokers authorizer.class.name"),
        (("leader", "elect", "nonsense"), "write it like orders-0"),
        (("cluster", "logdirs", "--broker", "7"), "the cluster has 1"),
        (("config", "get", "broker", "7"), "the cluster has 1"),
        (("config", "get", "logger", "7"), "the cluster has 1"),
        (("config", "set", "broker", "7", "log.retention.hours=1"), "the cluster has 1"),
        (("profile", "use", "nope"), "`barnabas profile list` shows"),
        (("topic", "list", "--profile", "nope"), "`barnabas profile list` shows"),
        (("topic", "list", "--client-config", "/nowhere"), "/nowhere: No such file"),
        (("topic", "list", "-X", "bootstrap.server=x"), "did you mean 'bootstrap.servers'?"),
        (("topic", "list", "-X", "security.protocol=SASL_PLAINTEXT", *PLAIN), "it asks for no sign-in"),
        (("topic", "list", "-X", "security.protocol=SSL"), "is TLS spoken there at all?"),
        (("reassign", "run", "/nowhere"), "/nowhere: No such file"),
        (("dump", "/nowhere"), "/nowhere"),
        (("up", "--config", "/nowhere"), "/nowhere: No such file"),
        (("up", "--set", "nonsense=1"), "there is no setting 'nonsense'"),
        (("up", "--set", "log.retention.hour=1"), "did you mean 'log.retention.hours'?"),
        (("up", "--set", "principal.builder.class=x.Y"), "no code is loaded"),
        (("status", "--data-dir", "/nowhere"), "--data-dir names another"),
        (("down", "--data-dir", "/nowhere"), "--data-dir names another"),
        (("generate", "nothing"), "choose from 'grafana'"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_mistake_is_one_line_that_says_what_to_do(
    broker: Broker,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    words: tuple[str, ...],
    advice: str,
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP_SERVERS", broker.address_of("PLAINTEXT"))
    monkeypatch.setenv("BARNABAS_HOME", str(tmp_path))
    capsys.readouterr()
    try:
        code = main(words)
    except SystemExit as end:
        code = int(str(end.code))
    said = capsys.readouterr().err
    assert code != 0
    assert advice in said
    assert len(said.splitlines()) == 1, said
    assert said.startswith("barnabas")


@pytest.mark.parametrize(
    ("listener", "words", "advice"),
    [
        ("SASL_PLAINTEXT", (), "say how with --client-config FILE or -X security.protocol"),
        ("SASL_PLAINTEXT", ("-X", "security.protocol=SASL_PLAINTEXT", *PLAIN), "see sasl.username and sasl.password"),
        ("SSL", (), "say how with --client-config FILE or -X security.protocol"),
        ("SSL", ("-X", "security.protocol=SSL"), "certificate"),
    ],
)
def test_a_wrong_way_in_says_what_is_asked_for(
    broker: Broker, capsys: pytest.CaptureFixture[str], listener: str, words: tuple[str, ...], advice: str
) -> None:
    assert main(["topic", "list", "-b", broker.address_of(listener), *words]) == 1
    said = capsys.readouterr().err
    assert advice in said
    assert len(said.splitlines()) == 1
