"""Hostile schemas cost a worker process at most: a clear refusal, in bounded time and memory, and others go on."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from barnabas.registry import pool as pool_module
from barnabas.registry.engines import CheckJob, Parsed, ParseJob, Source
from barnabas.registry.incompatibility import InvalidSchema
from barnabas.registry.pool import Pool


def deep_avro() -> Source:
    return Source("AVRO", '{"type":"array","items":' * 20_000 + '"int"' + "}" * 20_000)


def deep_json() -> Source:
    return Source("JSON", '{"not":' * 20_000 + "{}" + "}" * 20_000)


def deep_protobuf() -> Source:
    return Source("PROTOBUF", 'syntax="proto3";' + "message M {" * 5_000 + "}" * 5_000)


def endless_reference() -> Source:
    return Source("JSON", json.dumps({"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/a"}}}))


@pytest.mark.parametrize("make", [deep_avro, deep_json, deep_protobuf], ids=lambda make: make.__name__)
def test_deep_schemas_are_refused(make: Any) -> None:
    async def work() -> None:
        pool = Pool()
        try:
            with pytest.raises(InvalidSchema):
                await pool.run(ParseJob(make()), Parsed)
            assert (await pool.run(ParseJob(Source("AVRO", '"int"')), Parsed)).text == '"int"'
        finally:
            await pool.close()

    asyncio.run(work())


def test_a_reference_to_itself_is_refused_when_it_is_compared() -> None:
    async def work() -> None:
        pool = Pool()
        try:
            job = CheckJob(endless_reference(), ((1, Source("JSON", "{}")),), "FULL")
            with pytest.raises(InvalidSchema, match="leads to itself"):
                await pool.run(job, list)
        finally:
            await pool.close()

    asyncio.run(work())


def test_a_pattern_that_takes_for_ever_is_not_run() -> None:
    """Patterns are matched with names by RE2, whose time is linear."""
    pattern = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}, "additionalProperties": False}
    names = {"type": "object", "properties": {"a" * 5000 + "!": {"type": "string"}}, "additionalProperties": False}

    async def work() -> None:
        pool = Pool()
        try:
            job = CheckJob(Source("JSON", json.dumps(pattern)), ((1, Source("JSON", json.dumps(names))),), "FULL")
            assert await pool.run(job, list)
        finally:
            await pool.close()

    asyncio.run(work())


def test_a_job_that_takes_too_long_is_ended_while_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "JOB_SECONDS_MAX", 3.0)
    many = {
        f"p{number}": {"anyOf": [{"type": "string", "maxLength": each} for each in range(80)]} for number in range(150)
    }
    slow = json.dumps({"type": "object", "additionalProperties": False, "properties": many})
    slower = json.dumps({"type": "object", "additionalProperties": False, "properties": dict(list(many.items())[1:])})

    async def work() -> None:
        pool = Pool(processes_max=2)
        try:
            earlier = tuple((version, Source("JSON", slower)) for version in range(1, 40))
            job = CheckJob(Source("JSON", slow), earlier, "FORWARD_TRANSITIVE")
            hostile = asyncio.ensure_future(pool.run(job, list))
            for _ in range(5):
                assert (await pool.run(ParseJob(Source("AVRO", '"int"')), Parsed)).text == '"int"'
            assert not hostile.done()
            with pytest.raises(InvalidSchema, match="too much time or memory"):
                await hostile
            assert (await pool.run(ParseJob(Source("AVRO", '"int"')), Parsed)).text == '"int"'
        finally:
            await pool.close()

    asyncio.run(work())
