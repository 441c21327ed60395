"""Whoever asks a controller whose metadata log is not open yet gets an answer, though it may be an error."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.broker.requests.routes import CONTROLLER_ROUTES
from barnabas.raft.driver import RaftDriver
from barnabas.testing.loop import simulate
from barnabas.testing.simulated_cluster import CONTROLLER_PORT, SimulatedCluster
from barnabas.transport.channel import Channel, PeerGone
from barnabas.transport.versions import agree
from barnabas.wire.api import ApiKey
from barnabas.wire.messages import request_of

# Those that ask for nothing in particular, or sign in; an envelope holds another request.
UNASKED = {ApiKey.ENVELOPE, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}


def test_a_controller_that_is_starting_answers_everything(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def whole() -> None:
        asked = asyncio.Event()
        start = RaftDriver.start

        async def late(self: RaftDriver) -> None:
            await asked.wait()
            await start(self)

        monkeypatch.setattr(RaftDriver, "start", late)
        cluster = SimulatedCluster(1, brokers=1)
        starting = cluster.begin(1, is_founder=True)
        while True:
            await asyncio.sleep(0.01)
            try:
                channel = await Channel.connect("node1", CONTROLLER_PORT, client_id="early")
                break
            except PeerGone:  # it does not listen yet
                continue
        ranges = await agree(channel)
        for key in sorted(set(CONTROLLER_ROUTES) - UNASKED):
            request = request_of(key)()
            async with asyncio.timeout(30):
                answer = await channel.send(request, ranges.highest_common(type(request)))
            assert answer is not None, key
        channel.close()
        asked.set()
        await starting
        await cluster.stop_all()

    simulate(whole, seed=1, time_s_max=600)
    assert "handler failed" not in caplog.text
