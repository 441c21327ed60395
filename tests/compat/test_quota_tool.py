"""Kafka's own tool for settings sets, shows and removes quotas on our broker."""

from __future__ import annotations

import pytest
from kafka_tools import run_tool

TOOL = "kafka.admin.ConfigCommand"
ALICE = ("--entity-type", "users", "--entity-name", "quota-alice", "--entity-type", "clients", "--entity-default")
ADDRESS = ("--entity-type", "ips", "--entity-name", "10.9.8.7")


@pytest.mark.java
def test_the_tool_sets_shows_and_removes_quotas(broker_address: str) -> None:
    def tool(*arguments: str) -> str:
        code, said = run_tool(TOOL, "--bootstrap-server", broker_address, *arguments)
        assert code == 0, said
        return said

    tool("--alter", "--add-config", "producer_byte_rate=1000000,request_percentage=50", *ALICE)
    tool("--alter", "--add-config", "connection_creation_rate=100", *ADDRESS)
    assert "producer_byte_rate=1000000.0, request_percentage=50.0" in tool("--describe", *ALICE)
    assert "connection_creation_rate=100.0" in tool("--describe", *ADDRESS)
    tool("--alter", "--delete-config", "producer_byte_rate,request_percentage", *ALICE)
    tool("--alter", "--delete-config", "connection_creation_rate", *ADDRESS)
    assert "producer_byte_rate" not in tool("--describe", *ALICE)
    assert "connection_creation_rate" not in tool("--describe", *ADDRESS)


@pytest.mark.java
def test_the_tool_is_told_what_is_wrong_with_a_quota(broker_address: str) -> None:
    code, said = run_tool(
        TOOL, "--bootstrap-server", broker_address, "--alter", "--add-config", "producer_byte_rate=-1", *ALICE
    )
    assert code != 0
    assert "above 0" in said
