"""Settings of the clients under Kafka's names: defaults, mistakes, and what follows from what."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from barnabas.client.admin.client import Admin
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.settings.client import Settings, address_of
from barnabas.client.settings.consumer import ConsumerSettings
from barnabas.client.settings.foreign import advice, foreign_names
from barnabas.client.settings.producer import ProducerSettings
from barnabas.model.settings import InvalidSetting, SettingTable


def test_defaults_are_those_that_kafkas_users_know() -> None:
    producer, consumer = ProducerSettings(), ConsumerSettings()
    assert (producer.acks, producer.linger_ms, producer.batch_size, producer.is_idempotent) == (-1, 5, 16384, True)
    assert (producer.delivery_timeout_ms, producer.buffer_memory) == (120_000, 33_554_432)
    assert (consumer.fetch_max_wait_ms, consumer.max_partition_fetch_bytes) == (500, 1_048_576)
    assert consumer.isolation_level == "read_uncommitted"


def test_kafkas_names_and_texts_are_understood() -> None:
    settings = ProducerSettings.of({"bootstrap.servers": "a:1, b:2", "acks": "all", "linger.ms": "7", "batch_size": 9})
    assert settings.bootstrap_servers == ("a:1", "b:2")
    assert (settings.acks, settings.linger_ms, settings.batch_size) == (-1, 7, 9)


def test_a_misspelt_name_suggests_the_right_one() -> None:
    with pytest.raises(InvalidSetting, match=r"linger\.ms"):
        ProducerSettings.of({"linger.sm": "5"})


@pytest.mark.parametrize("wrong", [{"acks": 2}, {"linger_ms": -1}, {"compression_type": "brotli"}])
def test_a_wrong_value_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidSetting):
        ProducerSettings(**wrong)  # type: ignore[arg-type]


def test_one_string_of_servers_is_not_taken_for_its_letters() -> None:
    assert Settings(bootstrap_servers="a:1,b:2").bootstrap_servers == ("a:1", "b:2")  # type: ignore[arg-type]


def test_text_means_in_python_what_it_means_in_a_file() -> None:
    """Above all "false", which is true as Python has it."""
    told: dict[str, Any] = {
        "acks": "all",
        "linger_ms": "7",
        "enable_idempotence": "false",
        "bootstrap_servers": ["a:1"],
    }
    settings = ProducerSettings(**told)
    assert (settings.acks, settings.linger_ms, settings.enable_idempotence) == (-1, 7, False)
    assert settings.bootstrap_servers == ("a:1",)
    assert hash(settings)


@pytest.mark.parametrize(
    "wrong", [{"linger_ms": None}, {"linger_ms": 0.5}, {"linger_ms": True}, {"client_id": 7}, {"enable_idempotence": 1}]
)
def test_a_value_of_another_type_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidSetting, match=next(iter(wrong)).replace("_", r"\.")):
        ProducerSettings(**wrong)


def test_a_password_of_another_type_is_not_printed() -> None:
    with pytest.raises(InvalidSetting) as refused:
        Settings(sasl_password=b"hunter2")  # type: ignore[arg-type]
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("client", [Producer, Consumer, Admin])
def test_a_mapping_in_the_place_of_settings_is_answered_with_what_reads_one(client: Any) -> None:
    with pytest.raises(InvalidSetting, match=r"Settings\.of"):
        client({"bootstrap.servers": "a:1"})


CONFLICTS = [{"acks": 0}, {"acks": 1}, {"retries": 0}, {"max.in.flight.requests.per.connection": 6}]


def attributes(names: dict[str, Any]) -> dict[str, Any]:
    return {name.replace(".", "_"): value for name, value in names.items()}


@pytest.mark.parametrize("other", CONFLICTS[:3])
def test_fewer_acks_or_no_retries_switch_idempotence_off_unless_it_was_asked_for(other: dict[str, Any]) -> None:
    assert not ProducerSettings(**other).is_idempotent
    assert not replace(ProducerSettings(), **other).is_idempotent
    assert ProducerSettings(enable_idempotence=True).is_idempotent


@pytest.mark.parametrize("other", CONFLICTS)
def test_idempotence_that_was_asked_for_is_not_switched_off_in_silence(other: dict[str, Any]) -> None:
    ((name, value),) = other.items()
    both = rf"(?s)(?=.*enable\.idempotence=true)(?=.*{name}={value})"
    with pytest.raises(InvalidSetting, match=both):
        ProducerSettings.of({"enable.idempotence": "true", name: str(value)})
    with pytest.raises(InvalidSetting, match=both):
        ProducerSettings(enable_idempotence=True, **attributes(other))
    assert not ProducerSettings(enable_idempotence=False, **attributes(other)).is_idempotent
    assert not ProducerSettings.of({"enable.idempotence": "false", name: value}).is_idempotent


def test_idempotence_limits_what_is_in_flight_to_what_brokers_remember() -> None:
    with pytest.raises(InvalidSetting, match="five"):
        ProducerSettings(max_in_flight_requests_per_connection=6)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("host:1234", ("host", 1234)),
        ("host", ("host", 9092)),
        ("[::1]:7", ("::1", 7)),
        ("[::1]", ("::1", 9092)),
        ("PLAINTEXT://host:5", ("host", 5)),
    ],
)
def test_addresses_are_read(text: str, address: tuple[str, int]) -> None:
    assert address_of(text) == address


@pytest.mark.parametrize("text", ["", ":1", "host:x", "host:0", "host:70000", "[::1]x"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidSetting):
        address_of(text)


# What configNames() says of the producer, the consumer and the admin client of Apache Kafka 4.3.1.
KAFKAS = frozenset(
    """
acks allow.auto.create.topics auto.commit.interval.ms auto.offset.reset batch.size bootstrap.controllers
bootstrap.servers buffer.memory check.crcs client.dns.lookup client.id client.rack compression.gzip.level
compression.lz4.level compression.type compression.zstd.level config.providers connections.max.idle.ms
default.api.timeout.ms delivery.timeout.ms enable.auto.commit enable.idempotence enable.metrics.push
exclude.internal.topics fetch.max.bytes fetch.max.wait.ms fetch.min.bytes group.id group.instance.id group.protocol
group.remote.assignor heartbeat.interval.ms interceptor.classes isolation.level key.deserializer key.serializer
linger.ms max.block.ms max.in.flight.requests.per.connection max.partition.fetch.bytes max.poll.interval.ms
max.poll.records max.request.size metadata.max.age.ms metadata.max.idle.ms metadata.recovery.rebootstrap.trigger.ms
metadata.recovery.strategy metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
partition.assignment.strategy partitioner.adaptive.partitioning.enable partitioner.availability.timeout.ms
partitioner.class partitioner.ignore.keys receive.buffer.bytes reconnect.backoff.max.ms reconnect.backoff.ms
request.timeout.ms retries retry.backoff.max.ms retry.backoff.ms sasl.client.callback.handler.class sasl.jaas.config
sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.service.name
sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class
sasl.login.class sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms sasl.mechanism sasl.oauthbearer.assertion.algorithm
sasl.oauthbearer.assertion.claim.aud sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file sasl.oauthbearer.assertion.private.key.file
sasl.oauthbearer.assertion.private.key.passphrase sasl.oauthbearer.assertion.template.file
sasl.oauthbearer.client.credentials.client.id sasl.oauthbearer.client.credentials.client.secret
sasl.oauthbearer.clock.skew.seconds sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.header.urlencode sasl.oauthbearer.jwks.endpoint.refresh.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.ms
sasl.oauthbearer.jwks.endpoint.url sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
sasl.oauthbearer.scope sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url security.protocol security.providers send.buffer.bytes session.timeout.ms
share.acknowledgement.mode share.acquire.mode socket.connection.setup.timeout.max.ms
socket.connection.setup.timeout.ms ssl.cipher.suites ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain ssl.keystore.key
ssl.keystore.location ssl.keystore.password ssl.keystore.type ssl.protocol ssl.provider
ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type transaction.timeout.ms transaction.two.phase.commit.enable
transactional.id value.deserializer value.serializer
""".split()  # noqa: SIM905
)


def test_every_setting_of_kafkas_clients_is_known() -> None:
    known = [*ProducerSettings.known(), *ConsumerSettings.known()]
    assert not KAFKAS - {setting.name for setting in known}


def test_a_setting_without_effect_is_taken_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "barnabas.client"):
        Settings.of({"enable.metrics.push": "false", "retries": 3, "client.id": "x"})
    assert [word in caplog.text for word in ("enable.metrics.push", "KIP-714", "retries", "client.id")] == [
        True,
        True,
        True,
        False,
    ]
    with pytest.raises(InvalidSetting, match="true or false"):
        Settings.of({"enable.metrics.push": "perhaps"})


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("key.serializer", "org.apache.kafka.common.serialization.StringSerializer", "serde"),
        ("value.deserializer", "org.apache.kafka.common.serialization.StringDeserializer", "serde"),
        ("interceptor.classes", "com.example.Audit", "Python"),
        ("metric.reporters", "com.example.Reporter", "metrics"),
        ("ssl.truststore.type", "JKS", "PEM"),
        ("ssl.keystore.password", "hush", "ssl.key.password"),
        ("sasl.login.callback.handler.class", "com.example.Handler", "sasl_oauthbearer_token_provider"),
        ("client.dns.lookup", "resolve_canonical_bootstrap_servers_only", "all addresses"),
        ("transaction.two.phase.commit.enable", "true", "hand_over"),
    ],
)
def test_what_is_not_offered_says_what_to_use_instead(name: str, value: str, instead: str) -> None:
    with pytest.raises(InvalidSetting, match=instead) as refused:
        ProducerSettings.of({name: value})
    assert str(refused.value).startswith(name)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("interceptor.classes", ""),
        ("ssl.truststore.type", "PEM"),
        ("client.dns.lookup", "use_all_dns_ips"),
        ("metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"),
        ("transaction.two.phase.commit.enable", False),
        ("metric.reporters", ()),
    ],
)
def test_what_is_so_anyway_may_be_said(name: str, value: Any, caplog: pytest.LogCaptureFixture) -> None:
    assert ConsumerSettings.of({name: value}) == ConsumerSettings()
    assert not caplog.text


def test_a_misspelt_name_of_a_setting_without_effect_suggests_it() -> None:
    with pytest.raises(InvalidSetting, match=r"enable\.metrics\.push"):
        Settings.of({"enable.metric.push": "true"})


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("ssl.ca.location", "ssl.truststore.location"),
        ("ssl.certificate.location", "ssl.keystore.location"),
        ("ssl.key.location", "ssl.keystore.location"),
        ("ssl.key.pem", "ssl.keystore.key"),
        ("sasl.mechanisms", "sasl.mechanism"),
        ("queue.buffering.max.ms", "linger.ms"),
        ("message.max.bytes", "max.request.size"),
        ("message.timeout.ms", "delivery.timeout.ms"),
        ("request.required.acks", "acks"),
        ("compression.level", "compression.zstd.level"),
        ("fetch.wait.max.ms", "fetch.max.wait.ms"),
        ("sasl_plain_username", "sasl.username"),
        ("ssl_cafile", "ssl.truststore.location"),
        ("oauth_cb", "sasl_oauthbearer_token_provider"),
        ("error_cb", "raised"),
        ("log_level", "logging"),
    ],
)
def test_a_name_of_other_clients_is_answered_with_ours(name: str, ours: str) -> None:
    for kind in (Settings, ProducerSettings, ConsumerSettings):
        with pytest.raises(InvalidSetting) as refused:
            kind.of({name: "1"})
        said = str(refused.value)
        assert name in said
        assert ours in said.partition("instead: ")[2]


def test_advice_about_names_of_others_names_settings_that_there_are() -> None:
    ours = {setting.name for kind in (ProducerSettings, ConsumerSettings) for setting in kind.known()}
    for name in foreign_names():
        assert name not in ours
        said = advice(name)
        assert said is not None
        word = said.split()[0].rstrip(",:")
        if "." in word and "(" not in word:
            assert word in ours, name


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.parametrize(
    ("mechanism", "module"), [("PLAIN", PLAIN), ("SCRAM-SHA-256", SCRAM), ("SCRAM-SHA-512", SCRAM)]
)
def test_name_and_password_are_read_from_javas_notation(mechanism: str, module: str) -> None:
    told = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f'{module} required username="al ice" password="hu\\"sh" ;',
    }
    read = Settings.of(told)
    assert (read.sasl_username, read.sasl_password) == ("al ice", 'hu"sh')
    assert "hu" not in repr(read).replace("https", "")


@pytest.mark.parametrize(
    "wrong",
    [
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{SCRAM} required username=a password=hush;"},
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{PLAIN} required username=a password=hush"},
        {"sasl.mechanism": "PLAIN", "sasl.jaas.config": f"{PLAIN} required password=hush;"},
        {"sasl.jaas.config": f"{PLAIN} required username=a password=hush;"},
    ],
)
def test_a_login_that_cannot_be_read_is_refused_and_not_shown(wrong: dict[str, str]) -> None:
    with pytest.raises(InvalidSetting) as refused:
        Settings.of({"security.protocol": "SASL_SSL", **wrong})
    assert "hush" not in str(refused.value)


def test_tokens_need_one_place_to_come_from() -> None:
    told: dict[str, Any] = {"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER"}
    url = {"sasl.oauthbearer.token.endpoint.url": "https://issuer.test/token"}
    provider = {"sasl.oauthbearer.token.provider": lambda: "token"}
    who = {"sasl.oauthbearer.client.credentials.client.id": "me"}
    for wrong in (told, told | url, told | url | who | provider):
        with pytest.raises(InvalidSetting, match=r"OAUTHBEARER needs|client\.id"):
            Settings.of(wrong)
    assert Settings.of(told | provider).sasl_oauthbearer_token_provider is not None
    assert Settings.of(told | url | who).sasl_oauthbearer_client_credentials_client_id == "me"
    jaas = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=me clientSecret=s;"
    read = Settings.of(told | url | {"sasl.jaas.config": jaas})
    assert read.sasl_oauthbearer_client_credentials_client_secret == "s"


def test_no_retries_switch_idempotence_off_and_forbid_transactions() -> None:
    assert not ProducerSettings(retries=0).is_idempotent
    assert ProducerSettings(retries=1).is_idempotent
    with pytest.raises(InvalidSetting, match="retries"):
        ProducerSettings(retries=0, transactional_id="t")


def test_the_level_of_the_codec_in_use_is_the_one_that_counts() -> None:
    told = {"compression.gzip.level": "1", "compression.lz4.level": "12", "compression.zstd.level": "-5"}
    levels = {
        codec: ProducerSettings.of({"compression.type": codec, **told}).compression_level
        for codec in ("none", "gzip", "snappy", "lz4", "zstd")
    }
    assert levels == {"none": None, "gzip": 1, "snappy": None, "lz4": 12, "zstd": -5}
    for name, wrong in (("gzip", "0"), ("gzip", "10"), ("lz4", "18"), ("zstd", "23")):
        with pytest.raises(InvalidSetting):
            ProducerSettings.of({f"compression.{name}.level": wrong})


def test_an_assignor_of_the_brokers_needs_the_brokers_protocol() -> None:
    assert ConsumerSettings(group_protocol="consumer", group_remote_assignor="range").group_remote_assignor == "range"
    with pytest.raises(InvalidSetting, match=r"group\.protocol=consumer"):
        ConsumerSettings(group_remote_assignor="range")


def test_the_tables_that_pages_are_made_of_hold_what_takes_effect() -> None:
    assert isinstance(Settings.table(), SettingTable)
    assert not [setting for setting in ProducerSettings.table() if setting.unused]
    assert "sasl.oauthbearer.token.provider" not in Settings.table()
