"""Send records to a topic from a page."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import Any, Final, Literal

import msgspec

from barnabas.client.producer import Producer
from barnabas.client.settings.producer import ProducerSettings
from barnabas.console.endpoint import Call, Endpoint
from barnabas.ops.records.encoding import Encoder, wanted
from barnabas.ops.records.schemas import Schemas
from barnabas.rest.errors import RestError

HEADERS_MAX: Final = 100
COUNT_MAX: Final = 1000

Form = Literal["text", "hex", "base64", "null", "schema"]


class Draft(msgspec.Struct):
    """A record; ``schema`` encodes JSON with the latest schema of the topic's subject."""

    value: str = ""
    key: str = ""
    value_form: Form = "text"
    key_form: Form = "text"
    headers: list[tuple[str, str]] = []
    partition: int | None = None
    count: int = 1  # how often it is sent


async def produce_record(call: Call) -> dict[str, Any]:
    draft = await call.body(Draft)
    name = call.path("topic")
    if len(draft.headers) > HEADERS_MAX or not 1 <= draft.count <= COUNT_MAX:
        raise RestError(400, f"a record has at most {HEADERS_MAX} headers and is sent 1 to {COUNT_MAX} times")
    key, value = _bytes(draft.key, draft.key_form, "key"), _bytes(draft.value, draft.value_form, "value")
    forms = {"key": draft.key_form, "value": draft.value_form}
    if "schema" in forms.values():
        registry = call.view.registry
        if registry is None:
            raise RestError(
                400, "encoding with a schema needs a schema registry: start the console with --schema-registry"
            )
        chosen = {side: wanted("topic", None) if form == "schema" else None for side, form in forms.items()}
        encoder = Encoder(Schemas(registry), key=chosen["key"], value=chosen["value"])
        key, value = await encoder.encode(name, key, value)
    headers = [(header, text.encode()) for header, text in draft.headers]
    call.audited["count"] = draft.count
    async with Producer(ProducerSettings.of(dict(call.view.given))) as producer:
        sent = [
            await producer.send(name, key=key, value=value, headers=headers, partition=draft.partition)
            for _ in range(draft.count)
        ]
    return {"partition": sent[-1].partition, "offset": sent[-1].offset, "count": len(sent)}


def _bytes(text: str, form: Form, side: str) -> bytes | None:
    try:
        if form == "null":
            return None
        if form == "hex":
            return bytes.fromhex(text)
        if form == "base64":
            return b64decode(text, validate=True)
    except (ValueError, binascii.Error) as error:
        raise RestError(400, f"the {side} is not {form}: {error}") from None
    # An empty key field means no key; an empty value is a value.
    return None if side == "key" and not text else text.encode()


ENDPOINTS: Final = (
    Endpoint("POST", "/clusters/{cluster}/topics/{topic}/records", produce_record, "Send a record", body=Draft),
)
