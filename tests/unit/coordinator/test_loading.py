"""A shard is loaded from its log, wherever that lies by then; one that cannot be loaded says so and tries again."""

from __future__ import annotations

import asyncio

import pytest
import runtime_scene
from runtime_scene import Counter, Scene, play

from barnabas.coordinator.runtime import log_slices
from barnabas.model import errors
from barnabas.storage.log import PartitionLog
from barnabas.world.disk import DiskFull, File
from barnabas.world.memory_file import MemoryFile


async def fill(scene: Scene, count: int) -> None:
    await scene.lead()
    for _ in range(count):
        await scene.ask("add", 1)
    scene.stage.lead(runtime_scene.FOLLOWER)


def test_a_log_that_moves_while_it_is_read_is_read_on_in_its_new_place(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(scene: Scene) -> None:
        await fill(scene, 20)
        stage, old = scene.stage, scene.stage.partition.log
        scene.stage.lead()
        for _ in range(3):
            await asyncio.sleep(0)
        copy = "/data/copy"
        stage.world.disk.make_directory(copy)
        for name in stage.world.disk.list(old.directory):
            content = stage.world.disk.read_all(f"{old.directory}/{name}", size_bytes_max=1 << 20)
            stage.world.disk.open(f"{copy}/{name}", create=True).append(content)
        moved = await PartitionLog.open(
            stage.world, copy, old.partition, stage.settings, topic_id=old.topic_id, was_clean=False
        )
        moved.advance_high_watermark(moved.end_offset)
        assert scene.runtime.loading == [0], "it has not been read to its end"
        stage.partition.log = moved
        old.abandon()
        stage.world.disk.remove_tree(old.directory)
        await scene.runtime.until_loaded()
        assert await scene.ask("read") == 20

    monkeypatch.setattr(log_slices, "SLICE_BYTES", 100)
    play(story)


def test_a_shard_that_breaks_while_it_is_loaded_does_not_ask_for_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(scene: Scene) -> None:
        await fill(scene, 1)
        with monkeypatch.context() as broken:
            broken.setattr(Counter, "replay", lambda self, key, value, **options: 1 // 0)
            await scene.lead()
            assert scene.runtime.failed == [0]
            assert await scene.refusal("read") is errors.NOT_COORDINATOR
        await asyncio.sleep(2)
        await scene.runtime.until_loaded()
        assert await scene.ask("read") == 1

    play(story)


def test_a_load_that_fails_is_tried_again_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    tries = 0

    def view(self: File, position: int, size_bytes: int) -> memoryview | None:
        nonlocal tries
        tries += 1
        raise DiskFull(self.path, "too many open files")

    async def story(scene: Scene) -> None:
        await fill(scene, 1)
        with monkeypatch.context() as broken:
            broken.setattr(MemoryFile, "view", view)
            await scene.lead()
            await asyncio.sleep(600)
            assert 10 <= tries <= 20
        await asyncio.sleep(61)
        assert await scene.ask("read") == 1
        assert scene.runtime.failed == []

    play(story)
