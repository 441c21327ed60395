"""The clients of others, signing in: each writes one record and reads it back, or fails as it does when refused.

What a test gives is Kafka's names for settings of security (``sasl.mechanism``, ``ssl.ca.location``, ...); each client
is told them in its own way. The certificate of the broker is always checked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

SECONDS_MAX = 15.0
REFUSED_SECONDS = 5.0
TOKEN_SECONDS = 3600.0


class Refused(Exception):
    """The client says that it may not come in."""


def confluent(address: str, topic: str, security: Mapping[str, str]) -> bytes:
    from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

    refused: list[str] = []
    fatal = (KafkaError._AUTHENTICATION, KafkaError._SSL, KafkaError._ALL_BROKERS_DOWN)

    def on_error(error: Any) -> None:
        if error.code() in fatal:
            refused.append(str(error))

    common: dict[str, Any] = {"bootstrap.servers": address, "log_level": 0, "error_cb": on_error, **security}
    token = common.pop("token", None)
    if token is not None:
        common["oauth_cb"] = lambda _: (token, time.time() + TOKEN_SECONDS)
    producer = Producer({**common, "message.timeout.ms": int(SECONDS_MAX * 1000)})
    outcome: list[Any] = []
    producer.produce(topic, b"hello", on_delivery=lambda error, message: outcome.append(error or message.offset()))
    while not outcome and not refused:
        producer.poll(0.05)
    if refused or not isinstance(outcome[0], int):
        producer.purge()
        raise Refused(refused or outcome)
    consumer = Consumer({**common, "group.id": "signed", "enable.auto.commit": False})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        message = consumer.poll(SECONDS_MAX)
        assert message is not None
        if message.error():
            raise Refused(message.error())
        value = message.value()
        assert isinstance(value, bytes)
        return value
    except KafkaException as error:
        raise Refused(error) from error
    finally:
        consumer.close()


def kafka_python_apart(address: str, topic: str, security: Mapping[str, str]) -> bytes:
    """In a process of its own: refused, it leaves sockets and threads behind, which are not ours to clean up."""
    code = (
        "import json, sys, signed_clients\n"
        "try:\n"
        "    sys.stdout.buffer.write(signed_clients.kafka_python(*json.load(sys.stdin)))\n"
        "except signed_clients.Refused as error:\n"
        "    sys.exit(f'refused: {error}')\n"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        input=json.dumps([address, topic, dict(security)]).encode(),
        cwd=Path(__file__).parent,
        capture_output=True,
        timeout=4 * SECONDS_MAX,
        check=False,
    )
    if done.returncode and b"refused: " in done.stderr:
        raise Refused(done.stderr.decode().rpartition("refused: ")[2])
    assert done.returncode == 0, done.stderr
    return done.stdout


def kafka_python(address: str, topic: str, security: Mapping[str, str]) -> bytes:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from kafka.errors import KafkaError

    options: dict[str, Any] = {
        "bootstrap_servers": address,
        "security_protocol": security["security.protocol"],
        "ssl_cafile": security.get("ssl.ca.location"),
        "ssl_certfile": security.get("ssl.certificate.location"),
        "ssl_keyfile": security.get("ssl.key.location"),
        "bootstrap_timeout_ms": int(REFUSED_SECONDS * 1000),
    }
    if "token" in security:
        from kafka.net.sasl.oauth import AbstractTokenProvider

        class Given(AbstractTokenProvider):  # type: ignore[misc]
            def token(self) -> str:
                return security["token"]

        options |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Given()}
    elif "sasl.mechanism" in security:
        options |= {
            "sasl_mechanism": security["sasl.mechanism"],
            "sasl_plain_username": security["sasl.username"],
            "sasl_plain_password": security["sasl.password"],
        }
    try:
        producer = KafkaProducer(**options)
        try:
            producer.send(topic, b"hello").get(SECONDS_MAX)
        finally:
            producer.close(timeout=1)
        consumer = KafkaConsumer(**options, consumer_timeout_ms=int(SECONDS_MAX * 1000))
        try:
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            value = next(consumer).value
        finally:
            consumer.close()
    except (KafkaError, AssertionError) as error:
        raise Refused(str(error)) from None
    assert isinstance(value, bytes)
    return value


def aio(address: str, topic: str, security: Mapping[str, str]) -> bytes:
    return asyncio.run(_aio(address, topic, security))


async def _aio(address: str, topic: str, security: Mapping[str, str]) -> bytes:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
    from aiokafka.errors import KafkaError

    context = None
    if "SSL" in security["security.protocol"]:
        context = ssl.create_default_context(cafile=security.get("ssl.ca.location"))
        if "ssl.certificate.location" in security:
            context.load_cert_chain(security["ssl.certificate.location"], security["ssl.key.location"])
    options: dict[str, Any] = {
        "bootstrap_servers": address,
        "security_protocol": security["security.protocol"],
        "ssl_context": context,
    }
    if "token" in security:
        from aiokafka.abc import AbstractTokenProvider

        class Given(AbstractTokenProvider):  # type: ignore[misc]
            async def token(self) -> str:
                return security["token"]

        options |= {"sasl_mechanism": "OAUTHBEARER", "sasl_oauth_token_provider": Given()}
    elif "sasl.mechanism" in security:
        options |= {
            "sasl_mechanism": security["sasl.mechanism"],
            "sasl_plain_username": security["sasl.username"],
            "sasl_plain_password": security["sasl.password"],
        }
    producer = AIOKafkaProducer(**options)
    try:
        try:
            await asyncio.wait_for(producer.start(), SECONDS_MAX)
            await producer.send_and_wait(topic, b"hello")
        finally:
            await producer.stop()
        consumer = AIOKafkaConsumer(**options)
        try:
            await consumer.start()
            consumer.assign([TopicPartition(topic, 0)])
            consumer.seek(TopicPartition(topic, 0), 0)
            record = await asyncio.wait_for(consumer.getone(), SECONDS_MAX)
        finally:
            await consumer.stop()
    except KafkaError as error:
        raise Refused(error) from error
    value = record.value
    assert isinstance(value, bytes)
    return value


CLIENTS: dict[str, Callable[[str, str, Mapping[str, str]], bytes]] = {
    "confluent": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aio,
}
# Those of others with a wrong proof; kafka-python tries for seconds before it gives up.
WRONGLY: dict[str, Callable[[str, str, Mapping[str, str]], bytes]] = {**CLIENTS, "kafka-python": kafka_python_apart}
WRONG_CLIENTS = ["confluent", "aiokafka", pytest.param("kafka-python", marks=pytest.mark.slow)]
