"""The stand-ins for Kafka's scripts: its flags, words and exit codes. ``tests/compat`` runs them beside Kafka's."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

import pytest
from talk import Talk, batch

from barnabas.broker.settings.security import STANDARD_AUTHORIZER
from barnabas.testing import Broker

Run = Callable[..., tuple[int, str, str]]
SCRIPTS = ("topics", "configs", "consumer_groups", "console_producer", "console_consumer", "acls")


@pytest.fixture
def run(shared_broker: Broker, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    def call(script: str, *words: str, servers: str = shared_broker.bootstrap_servers) -> tuple[int, str, str]:
        main = import_module(f"barnabas.cli.shims.kafka_{script}").main
        code = main(["--bootstrap-server", servers, *words])
        said = capfdbinary.readouterr()
        return code, said.out.decode(), said.err.decode()

    return call


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_explains_itself(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        import_module(f"barnabas.cli.shims.kafka_{script}").main(["--help"])
    assert ended.value.code == 0
    assert f"kafka-{script.replace('_', '-')}.sh" in capsys.readouterr().out


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_script_is_installed_under_its_name(script: str) -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert f'"kafka-{script.replace("_", "-")}.sh" = "barnabas.cli.shims.kafka_{script}:main"' in text


# --- topics -----------------------------------------------------------------------------------------------------------


def test_topics_are_made_described_grown_and_deleted(run: Run, talk: Talk, name: str) -> None:
    words = ("--create", "--topic", name, "--partitions", "2", "--config", "retention.ms=1000")
    assert run("topics", *words) == (0, f"Created topic {name}.\n", "")
    assert run("topics", *words)[::2] == (
        1,
        f"Error while executing topic command : a topic '{name}' already exists\n",
    )
    assert run("topics", *words, "--if-not-exists") == (0, "", "")
    assert name in run("topics", "--list")[1].splitlines()
    topic_id = talk.topic_id(name)
    assert run("topics", "--describe", "--topic", name)[1] == (
        f"Topic: {name}\tTopicId: {topic_id}\tPartitionCount: 2\tReplicationFactor: 1"
        "\tConfigs: min.insync.replicas=1,retention.ms=1000\n"
        f"\tTopic: {name}\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
        f"\tTopic: {name}\tPartition: 1\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: \n"
    )
    assert run("topics", "--describe", "--topic", name, "--under-replicated-partitions") == (0, "", "")
    assert run("topics", "--alter", "--topic", name, "--partitions", "3") == (0, "", "")
    assert "none can be taken away" in run("topics", "--alter", "--topic", name, "--partitions", "1")[2]
    assert run("topics", "--delete", "--topic", name) == (0, "", "")
    assert run("topics", "--delete", "--topic", name)[::2] == (
        1,
        f"Error while executing topic command : Topic '{name}' does not exist as expected\n",
    )
    assert run("topics", "--delete", "--topic", name, "--if-exists")[0] == 0


def test_topics_are_matched_as_a_whole(run: Run, talk: Talk, name: str) -> None:
    for each in (f"{name}-a", f"{name}-b", f"{name}-ab"):
        talk.create(each)
    assert run("topics", "--list", "--topic", f"{name}-[ab]")[1] == f"{name}-a\n{name}-b\n"


def test_exactly_one_action_is_needed(run: Run) -> None:
    assert "exactly one action" in run("topics", "--list", "--describe")[2]
    assert run("topics")[0] == 1
    assert run("topics", "--create")[0] == 1


# --- configs ----------------------------------------------------------------------------------------------------------


def test_settings_are_described_with_their_synonyms(run: Run, talk: Talk, name: str) -> None:
    talk.create(name, retention_ms="1000")
    words = ("--entity-type", "topics", "--entity-name", name)
    assert run("configs", "--describe", *words)[1] == (
        f"Dynamic configs for topic {name} are:\n"
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}\n"
    )
    changed = run("configs", "--alter", *words, "--add-config", "cleanup.policy=[compact,delete],segment.bytes=2000000")
    assert changed == (0, f"Completed updating config for topic {name}.\n", "")
    assert "cleanup.policy=compact,delete" in run("configs", "--describe", "--topic", name)[1]
    assert run("configs", "--alter", *words, "--delete-config", "cleanup.policy,retention.ms")[0] == 0
    assert "retention" not in run("configs", "--describe", *words)[1]
    code, _, error = run("configs", "--alter", *words, "--add-config", "nope=1")
    assert (code, "topics have no setting 'nope'" in error) == (1, True)


def test_brokers_have_settings_of_their_own_and_of_all(run: Run) -> None:
    one = ("--entity-type", "brokers", "--entity-name", "1")
    every = ("--entity-type", "brokers", "--entity-default")
    assert run("configs", "--alter", *one, "--add-config", "log.cleaner.backoff.ms=20")[1] == (
        "Completed updating config for broker 1.\n"
    )
    assert run("configs", "--describe", *one)[1] == (
        "Dynamic configs for broker 1 are:\n"
        "  log.cleaner.backoff.ms=20 sensitive=false synonyms={DYNAMIC_BROKER_CONFIG:log.cleaner.backoff.ms=20, "
        "DEFAULT_CONFIG:log.cleaner.backoff.ms=15000}\n"
    )
    assert run("configs", "--describe", *every)[1].startswith("Default configs for brokers in the cluster are:\n")
    assert len(run("configs", "--describe", *one, "--all")[1].splitlines()) > 100
    assert run("configs", "--alter", *one, "--delete-config", "log.cleaner.backoff.ms")[0] == 0


def test_users_get_their_passwords_here_too(run: Run, name: str) -> None:
    words = ("--entity-type", "users", "--entity-name", name)
    made = run("configs", "--alter", *words, "--add-config", "SCRAM-SHA-256=[iterations=4096,password=x,y]")
    assert made == (0, f"Completed updating config for user {name}.\n", "")
    assert f"'{name}' are SCRAM-SHA-256=iterations=4096" in run("configs", "--describe", *words)[1]
    assert run("configs", "--alter", *words, "--delete-config", "SCRAM-SHA-256")[0] == 0
    assert name not in run("configs", "--describe", *words)[1]


# --- groups -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def group(run: Run, talk: Talk, name: str) -> str:
    talk.create(name, 2)
    talk.produce(name, bytes(batch(b"a", b"b", b"c")))
    where = ("--group", f"{name}-g", "--topic", name)
    assert run("consumer_groups", "--reset-offsets", *where, "--to-offset", "2", "--execute")[0] == 0
    return f"{name}-g"


def test_groups_are_described_as_kafka_lays_them_out(run: Run, group: str) -> None:
    topic = group.removesuffix("-g")
    assert group in run("consumer_groups", "--list")[1].splitlines()
    assert run("consumer_groups", "--list", "--state")[1].splitlines()[0] == f"{'GROUP':<25} {'STATE':<20}"
    code, out, error = run("consumer_groups", "--describe", "--group", group)
    assert (code, error) == (0, f"\nConsumer group '{group}' has no active members.\n")
    columns = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST")
    widths = (max(15, len(group)), max(15, len(topic)), 10, 15, 15, 15, 15, 15)

    def line(*cells: object) -> str:
        return (
            " ".join(f"{cell!s:<{width}}" for cell, width in zip(cells[:-1], widths, strict=True)) + f" {cells[-1]}\n"
        )

    nobody = ("-", "-", "-")
    assert out == "\n" + line(*columns, "CLIENT-ID") + line(group, topic, 0, 2, 3, 1, *nobody) + line(
        group, topic, 1, 0, 0, 0, *nobody
    )
    assert run("consumer_groups", "--describe", "--group", group, "--members")[1].endswith(
        "\nGROUP           CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     \n"
    )
    state = run("consumer_groups", "--describe", "--group", group, "--state")[1]
    assert state.splitlines()[-1].split()[-3:] == ["-", "Empty", "0"]
    assert run("consumer_groups", "--describe", "--group", "nobody")[0] == 1


def test_offsets_are_reset_and_deleted(run: Run, group: str) -> None:
    topic = group.removesuffix("-g")
    words = ("--reset-offsets", "--group", group, "--topic", topic)

    def moved(*more: str) -> list[list[str]]:
        return [line.split()[1:] for line in run("consumer_groups", *words, *more)[1].splitlines()[2:]]

    assert moved("--to-earliest") == [[topic, "0", "0"], [topic, "1", "0"]]
    assert "--execute option is missing" in run("consumer_groups", *words, "--to-earliest")[2]
    assert moved("--to-latest", "--dry-run") == [[topic, "0", "3"], [topic, "1", "0"]]
    assert moved("--shift-by", "-1", "--dry-run") == [[topic, "0", "1"], [topic, "1", "0"]]
    assert moved("--by-duration", "P9999D", "--dry-run")[0] == [topic, "0", "0"]
    assert moved("--to-datetime", "2100-01-01T00:00:00.000", "--dry-run")[0] == [topic, "0", "3"]
    assert run("consumer_groups", *words, "--to-current", "--export", "--dry-run")[1] == f"{topic},0,2\n{topic},1,0\n"
    assert run("consumer_groups", "--delete-offsets", "--group", group, "--topic", f"{topic}:1")[0] == 0
    assert run("consumer_groups", "--delete", "--group", group)[1] == (
        f"Deletion of requested consumer groups ('{group}') was successful.\n"
    )
    assert run("consumer_groups", "--delete", "--group", group)[0] == 1


# --- records ----------------------------------------------------------------------------------------------------------


def console(script: str, broker: Broker, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    code = f"import sys; from barnabas.cli.shims.kafka_{script} import main; sys.exit(main())"
    command = [sys.executable, "-c", code, "--bootstrap-server", broker.bootstrap_servers, *words]
    return subprocess.run(command, input=said, capture_output=True, text=True, timeout=60, check=False, env=os.environ)


def test_lines_become_records_and_records_lines(shared_broker: Broker, name: str) -> None:
    properties = ("parse.key=true", "key.separator=:", "parse.headers=true", "null.marker=NULL")
    words = [word for each in properties for word in ("--property", each)]
    sent = console("console_producer", shared_broker, "--topic", name, *words, said="h1:v1\tk1:one\nh:x\tk2:NULL\n")
    assert sent.returncode == 0, sent.stderr
    shown = ("print.key=true", "print.partition=true", "print.offset=true", "print.headers=true")
    words = [word for each in shown for word in ("--formatter-property", each)]
    read = console(
        "console_consumer", shared_broker, "--topic", name, "--from-beginning", "--max-messages", "2", *words
    )
    assert read.stdout == "Partition:0\tOffset:0\th1:v1\tk1\tone\nPartition:0\tOffset:1\th:x\tk2\tnull\n"
    assert read.stderr == "Processed a total of 2 messages\n"
    group = console(
        "console_consumer", shared_broker, "--topic", name, "--group", f"{name}-g", "--from-beginning",
        "--timeout-ms", "3000",
    )  # fmt: skip
    assert group.stdout == "one\nnull\n"
    part = console(
        "console_consumer", shared_broker, "--topic", name, "--partition", "0", "--offset", "1", "--timeout-ms", "500"
    )
    assert part.stdout == "null\n"


def test_a_line_without_a_key_ends_it(shared_broker: Broker, name: str) -> None:
    words = ("--topic", name, "--property", "parse.key=true")
    done = console("console_producer", shared_broker, *words, said="no key\n")
    assert (done.returncode, done.stderr) == (1, "No key separator found on line: no key\n")
    wrong = console("console_producer", shared_broker, "--topic", name, "--property", "parse.kee=true")
    assert wrong.returncode == 1


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def guarded() -> Iterator[Broker]:
    with Broker(settings={"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:ANONYMOUS"}) as broker:
        yield broker


def test_rules_are_added_listed_and_removed(run: Run, guarded: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = guarded.bootstrap_servers
    words = ("--allow-principal", "User:bob", "--consumer", "--topic", "orders", "--group", "g")
    code, out, _ = run("acls", "--add", *words, servers=servers)
    assert code == 0
    listed = run("acls", "--list", servers=servers)[1]
    assert listed == (
        "Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`:\n"
        "\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)\n"
        "\t(principal=User:bob, host=*, operation=DESCRIBE, permissionType=ALLOW)\n"
        "\n"
        "Current ACLs for resource `ResourcePattern(resourceType=GROUP, name=g, patternType=LITERAL)`:\n"
        "\t(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)\n"
        "\n"
    )
    assert out == listed.replace("Current ACLs", "Adding ACLs")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    assert "--force" in run("acls", "--remove", "--topic", "orders", servers=servers)[2]
    one = ("--remove", "--allow-principal", "User:bob", "--operation", "Read", "--topic", "orders", "--force")
    assert run("acls", *one, servers=servers)[0] == 0
    assert "READ" not in run("acls", "--list", "--topic", "orders", servers=servers)[1]
    assert run("acls", "--remove", "--topic", "orders", "--group", "g", "--force", servers=servers)[0] == 0
    assert run("acls", "--list", servers=servers)[1] == ""


def test_a_file_of_client_settings_is_read(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("request.timeout.ms=5000\nsecurity.protocol=PLAINTEXT\n")
    assert run("topics", "--list", "--command-config", str(file))[0] == 0
    file.write_text("security.protocol=SASL_PLAINTEXT\n")
    assert "sasl.mechanism" in run("topics", "--list", "--command-config", str(file))[2]
    assert run("topics", "--list", "--command-config", "/nowhere")[0] == 1
