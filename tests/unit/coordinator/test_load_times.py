"""What is told of loads: those that ended in the last 30 seconds, with the time that each took."""

from __future__ import annotations

from runtime_scene import FOLLOWER, Scene, play

from barnabas.coordinator.runtime.load_times import WINDOW_NS, LoadTimes


def test_a_load_counts_from_its_end_for_as_long_as_the_window_is() -> None:
    now_ns = [0]
    times = LoadTimes(lambda: now_ns[0])
    first, second, given_up = times.start(), times.start(), times.start()
    now_ns[0] = 5_000_000
    first()
    now_ns[0] = WINDOW_NS
    second()
    assert times.recent_ms() == [5.0, 30_000.0]
    now_ns[0] = WINDOW_NS + 5_000_001
    assert times.recent_ms() == [30_000.0]
    now_ns[0] = 3 * WINDOW_NS
    assert times.recent_ms() == []
    assert given_up is not None  # and it was never told of


def test_every_load_of_a_shard_is_timed() -> None:
    async def story(scene: Scene) -> None:
        assert scene.runtime.load_times.recent_ms() == []
        await scene.lead()
        assert len(scene.runtime.load_times.recent_ms()) == 1
        await scene.ask("add", 1)
        scene.stage.lead(FOLLOWER)
        await scene.lead()
        assert len(scene.runtime.load_times.recent_ms()) == 2

    play(story)


def test_a_load_that_is_given_up_is_not_told() -> None:
    async def story(scene: Scene) -> None:
        scene.stage.lead()
        scene.stage.lead(FOLLOWER)  # before the first load could end
        await scene.lead()
        assert len(scene.runtime.load_times.recent_ms()) == 1

    play(story)
