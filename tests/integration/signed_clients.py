"""The clients of others, signing in: each writes one record and reads it back, or fails as it does when refused.

What a test gives is Kafka's names for settings of security (``sasl.mechanism``, ``ssl.ca.location``, ...); each client
is told them in its own way. The certificate of the broker is always checked.
"""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

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


def kafka_python(address: str, topic: str, security: Mapping[str, str]) -> bytes:
    try:
        return _kafka_python(address, topic, security)
    except Refused as error:
        reason = str(error)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # refused, it leaves sockets open: not ours to repair
        gc.collect()
    raise Refused(reason)


def _kafka_python(address: str, topic: str, security: Mapping[str, str]) -> bytes:
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
