"""The runtime with a shard that counts: it answers after the commit, comes back by replay and is dropped in time."""

from __future__ import annotations

import asyncio

import pytest
from runtime_scene import COMMIT_KEY, COMMIT_VALUE, FOLLOWER, Scene, play

from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.storage.validate import Origin, Rules, validate
from barnabas.wire.records import encode_batch


def test_a_record_is_appended_replayed_and_answered() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        assert await scene.ask("add", 3) == 3
        assert await scene.ask("add", 4) == 7
        assert await scene.ask("read") == 7
        assert scene.stage.partition.log.end_offset == 2

    play(story)


def test_nobody_is_answered_before_the_high_watermark_has_passed() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        scene.stage.hold_the_high_watermark()
        adding = asyncio.ensure_future(scene.ask("add", 3))
        reading = asyncio.ensure_future(scene.ask("read"))
        await asyncio.sleep(1)
        assert not adding.done()
        assert not reading.done()  # it would see a number that may yet be lost
        scene.stage.let_the_high_watermark_go()
        assert await adding == 3
        assert await reading == 3

    play(story)


def test_state_comes_back_by_replay() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        for number in range(1000):
            await scene.ask("add", number)
        await scene.runtime.stop()
        scene.stage.lead(FOLLOWER)
        scene.runtime = scene.new_runtime()
        await scene.lead()
        assert await scene.ask("read") == 499_500

    play(story, segment_bytes=1 << 20)


def test_a_shard_that_is_being_loaded_asks_for_patience() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        await scene.ask("add", 1)
        scene.stage.lead(FOLLOWER)
        scene.stage.lead()
        assert scene.runtime.loading == [0]
        assert await scene.refusal("read") is errors.COORDINATOR_LOAD_IN_PROGRESS
        await scene.runtime.until_loaded()
        assert scene.runtime.active == [0]
        assert await scene.ask("read") == 1

    play(story)


def test_a_broker_that_does_not_lead_is_not_the_coordinator() -> None:
    async def story(scene: Scene) -> None:
        assert await scene.refusal("read") is errors.NOT_COORDINATOR

    play(story)


def test_who_waits_hears_that_leadership_is_lost() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        waiting = asyncio.ensure_future(scene.ask("wait", 5000))
        await asyncio.sleep(0.1)
        scene.stage.lead(FOLLOWER)
        assert await waiting == "unloaded"
        assert await scene.refusal("read") is errors.NOT_COORDINATOR

    play(story)


def test_what_was_not_committed_when_leadership_went_is_not_confirmed() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        scene.stage.hold_the_high_watermark()
        adding = asyncio.ensure_future(scene.ask("add", 3))
        await asyncio.sleep(0.1)
        scene.stage.lead(FOLLOWER)
        with pytest.raises(ApiError) as caught:
            await adding
        assert caught.value.error is errors.NOT_COORDINATOR

    play(story)


def test_a_write_that_fails_is_an_error_and_the_shard_is_loaded_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        await scene.ask("add", 1)
        waiting = asyncio.ensure_future(scene.ask("wait", 5000))
        await asyncio.sleep(0.1)
        scene.stage.lead(isr=())  # nobody is in sync
        assert await scene.refusal("add", 2) is errors.COORDINATOR_NOT_AVAILABLE
        assert await waiting == "unloaded"
        await scene.runtime.until_loaded()
        scene.stage.lead()
        assert await scene.ask("add", 2) == 3

    play(story, min_insync_replicas=1)


def test_a_step_that_is_too_large_for_the_topic_is_refused() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        assert await scene.refusal("add", 10**500) is errors.UNKNOWN_SERVER_ERROR
        await scene.runtime.until_loaded()
        assert await scene.ask("add", 2) == 2

    play(story, max_message_bytes=400)


def test_a_machine_that_breaks_harms_its_own_request_and_is_loaded_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        await scene.ask("add", 5)
        assert await scene.refusal("break") is errors.UNKNOWN_SERVER_ERROR
        await scene.runtime.until_loaded()
        assert await scene.ask("read") == 5

    play(story)


def test_a_refusal_harms_nobody() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        assert await scene.refusal("refuse") is errors.INVALID_REQUEST
        assert scene.runtime.active == [0]

    play(story)


def test_the_newest_deadline_of_a_key_counts() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        clock = scene.stage.world.clock
        started_ms = clock.wall_ms()
        first = asyncio.ensure_future(scene.ask("wait", 1000))
        await asyncio.sleep(0.5)
        second = asyncio.ensure_future(scene.ask("wait", 2000))
        assert await first == await second == started_ms + 2500

    play(story)


def test_a_wall_clock_that_is_set_back_or_forward_moves_no_deadline() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        clock = scene.stage.world.clock
        started_ms = clock.monotonic_ms()
        waiting = asyncio.ensure_future(scene.ask("wait", 1000))
        await asyncio.sleep(0.1)
        for skew_ms in (-3_600_000, 7_200_000):
            clock.wall_skew_ms += skew_ms
            await asyncio.sleep(0.1)
            assert not waiting.done()
        await waiting
        assert clock.monotonic_ms() == started_ms + 1000

    play(story)


def test_a_message_is_sent_when_its_decision_is_committed() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        await scene.ask("send", "hello")
        assert scene.sent == ["hello"]

    play(story)


def test_a_client_that_goes_away_is_forgotten() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        waiting = asyncio.ensure_future(scene.ask("wait", 1000))
        await asyncio.sleep(0.1)
        waiting.cancel()
        await asyncio.sleep(2)
        assert scene.runtime._runners[0]._waiting == {}

    play(story)


@pytest.mark.parametrize("is_reloaded", [False, True])
def test_what_a_transaction_writes_counts_when_it_is_committed(is_reloaded: bool) -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        await scene.ask("add in a transaction", 5)
        assert await scene.ask("read") == 0
        marker = encode_batch(
            [(scene.stage.world.clock.wall_ms(), COMMIT_KEY, COMMIT_VALUE, ())],
            producer_id=9,
            producer_epoch=0,
            is_transactional=True,
            is_control=True,
        )
        validate(bytearray(marker), Rules.of(scene.stage.settings, origin=Origin.COORDINATOR), now_ms=2**41)
        await scene.runtime.append_marker(0, marker)
        if is_reloaded:
            scene.stage.lead(FOLLOWER)
            await scene.lead()
        assert await scene.ask("read") == 5

    play(story)


def test_a_write_that_fails_harms_nobody_else_if_the_step_knows_what_to_do() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        waiting = asyncio.ensure_future(scene.ask("wait", 5000))
        await asyncio.sleep(0.1)
        scene.stage.lead(isr=())  # nobody is in sync
        assert await scene.refusal("add or forget it", 2) is errors.COORDINATOR_NOT_AVAILABLE
        assert scene.runtime.active == [0], "the shard has stayed"
        scene.stage.lead()
        assert await scene.ask("read") == 0
        assert await waiting > 0

    play(story, min_insync_replicas=1)


def test_a_rescue_that_cannot_be_written_either_has_the_shard_loaded_again() -> None:
    async def story(scene: Scene) -> None:
        await scene.lead()
        await scene.ask("add", 1)
        scene.stage.lead(isr=())
        assert await scene.refusal("add or add", 2) is errors.COORDINATOR_NOT_AVAILABLE
        assert scene.runtime.loading == [0]
        await scene.runtime.until_loaded()
        assert await scene.ask("read") == 1

    play(story, min_insync_replicas=1)
