"""Three nodes that speak TLS and sign in to each other, and forward what clients ask with the clients' own rights."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from waiting import until_async

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.model import errors
from barnabas.model.settings import InvalidSetting
from barnabas.transport.channel import Channel
from barnabas.transport.sign_in import Credentials, sign_in
from barnabas.transport.tls import TlsFiles, client_context
from barnabas.transport.versions import agree
from barnabas.wire.message import Message
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.world.real import real_world

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
JAAS = f'{MODULE} required username="node" password="s" user_node="s" user_alice="a";'
SECONDS_MAX = 60


def settings(directory: Path, authority: Authority, number: int, **more: str) -> dict[str, str]:
    server = authority.issue(f"/CN=node{number}")
    return {
        **DEVELOPMENT,
        "node.id": str(number),
        "log.dirs": str(directory / str(number)),
        "listeners": "SASL_SSL://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        "listener.security.protocol.map": "SASL_SSL:SASL_SSL,CONTROLLER:SASL_SSL",
        "ssl.keystore.location": str(server.store),
        "ssl.truststore.location": str(authority.certificate),
        "sasl.enabled.mechanisms": "PLAIN",
        "plain.sasl.jaas.config": JAAS,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:node",
        **{name.replace("_", "."): text for name, text in more.items()},
    }


async def ask(node: Node, authority: Authority, login: Credentials, request: Message) -> Any:
    host, port = node.bootstrap_servers.split(":")
    tls = client_context(TlsFiles(trust_store=str(authority.certificate)))
    channel = await Channel.connect(host, int(port), client_id="test", ssl=tls)
    try:
        ranges = await agree(channel)
        await sign_in(channel, login, lambda limit: 7 % limit)
        return await channel.send(request, ranges.highest_common(type(request)))
    finally:
        channel.close()
        await channel.closed


def creation(name: str) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=3)
    return CreateTopicsRequest(topics=[topic], timeout_ms=20_000)


def test_nodes_sign_in_to_each_other_and_forward_with_the_clients_rights(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")

    async def story() -> None:
        nodes = [Node(real_world(), BrokerSettings.of(settings(tmp_path, authority, 1)))]
        await nodes[0].start()
        try:
            port = next(each.port for each in nodes[0].listeners if each.name == "CONTROLLER")
            servers = f"127.0.0.1:{port}"
            for number in (2, 3):
                given = settings(tmp_path, authority, number, controller_quorum_bootstrap_servers=servers)
                nodes.append(Node(real_world(), BrokerSettings.of(given)))
                await nodes[-1].start()
            await until_async(lambda: all(len(node.services.raft.voters) == 3 for node in nodes))
            follower = next(node for node in nodes if not node.services.controller.is_active)
            allowed = await ask(follower, authority, Credentials("PLAIN", "node", "s"), creation("t"))
            assert allowed.topics[0].error_code == 0
            refused = await ask(follower, authority, Credentials("PLAIN", "alice", "a"), creation("u"))
            assert refused.topics[0].error_code == errors.TOPIC_AUTHORIZATION_FAILED.code
            await until_async(lambda: all("t" in node.services.image.topics.by_name for node in nodes))
            (partition,) = nodes[0].services.image.topics.by_name["t"].partitions
            assert len(partition.isr) == 3
        finally:
            for node in reversed(nodes):
                await node.stop()

    asyncio.run(story())


def test_a_node_without_a_login_for_the_others_does_not_start(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    without = f'{MODULE} required user_node="s";'
    given = settings(tmp_path, authority, 2, controller_quorum_bootstrap_servers="127.0.0.1:1")
    node = Node(real_world(), BrokerSettings.of({**given, "plain.sasl.jaas.config": without}))
    with pytest.raises(InvalidSetting, match="give a username and a password"):
        asyncio.run(node.start())
