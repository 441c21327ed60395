"""Somebody has been at the files: whatever they are now, the broker starts, or says which file it is and what to do.

It never hangs and never takes memory in proportion to what a file claims. By default a slice of the seeds is tried;
``BARNABAS_HOSTILE_SEEDS=n`` tries more.
"""

from __future__ import annotations

import asyncio
import gc
import os
import re
import resource
import shutil
import signal
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from talk import Talk, batch

from barnabas.broker.node.node import Node
from barnabas.broker.settings.broker import BrokerSettings
from barnabas.broker.settings.profile import DEVELOPMENT
from barnabas.model.errors import BarnabasError
from barnabas.testing import Broker
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.world.disk import AlreadyLocked, DiskFailure
from barnabas.world.real import real_world

SEEDS = int(os.environ.get("BARNABAS_HOSTILE_SEEDS", "60"))
START_SECONDS_MAX = 20
MEMORY_BYTES_MAX = 300 * 1024 * 1024
SETTINGS = {
    **DEVELOPMENT,
    "listeners": "PLAINTEXT://127.0.0.1:0",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "log.index.interval.bytes": "100",
}
LARGE = 50 << 30  # a sparse file: it takes no room, and nobody may read it into memory


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a bit of everything, after a clean stop."""
    directory = tmp_path_factory.mktemp("template") / "data"
    with Broker(data_dir=directory, settings=SETTINGS) as broker, Talk(broker.bootstrap_servers) as talk:
        talk.create("plain", 2)
        talk.create("keyed", cleanup_policy="compact")
        for number in range(200):
            talk.produce("plain", batch(b"%d" % number, timestamp=10**12 * 2), partition=number % 2)
            talk.produce("keyed", batch(b"%d" % number, key=b"%d" % (number % 7), timestamp=10**12 * 2))
        made = talk.ask(InitProducerIdRequest(transactional_id=None))
        talk.produce("plain", batch(b"p", producer_id=made.producer_id, producer_epoch=0, base_sequence=0))
    assert (directory / ".kafka_cleanshutdown").exists()
    return directory


@pytest.fixture
def data(template: Path, tmp_path: Path) -> Path:
    shutil.copytree(template, tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture(autouse=True)
def alarm() -> Iterator[None]:
    """A loop that never yields would hang the test: the alarm ends it."""

    def ring(*_: object) -> None:
        raise AssertionError("the broker hangs")

    before = signal.signal(signal.SIGALRM, ring)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def start(*directories: Path, **settings: str) -> str | None:
    """Start a broker and stop it again; what it said if it did not start."""
    signal.alarm(START_SECONDS_MAX)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # the most so far, of whatever ran in this process
    given = {**SETTINGS, "log.dirs": ",".join(map(str, directories)), **settings}

    async def main() -> str | None:
        node = Node(real_world(), BrokerSettings.of(given))
        try:
            await node.start()
        except (BarnabasError, DiskFailure, AlreadyLocked, OSError) as error:
            return str(error)
        await asyncio.sleep(0.01)
        await node.stop()
        return None

    try:
        return asyncio.run(main())
    finally:
        signal.alarm(0)
        with warnings.catch_warnings():
            # A start that failed may leave sockets to the collector: they are not what is tested here.
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MEMORY_BYTES_MAX


def files_of(data: Path) -> list[Path]:
    return sorted(path for path in data.rglob("*") if path.is_file() and not path.is_symlink() and path.name != ".lock")


def mutate(path: Path, chance: Random) -> str:
    """Do something to a file; what it was."""
    content = path.read_bytes()
    kind = chance.choice(("flip", "cut", "garbage", "zeroes", "huge", "append", "empty", "remove", "numbers", "twice"))
    match kind:
        case "flip" if content:
            damaged = bytearray(content)
            for _ in range(chance.choice((1, 3, 50))):
                damaged[chance.randrange(len(damaged))] ^= 1 << chance.randrange(8)
            path.write_bytes(damaged)
        case "cut" if content:
            path.write_bytes(content[: chance.randrange(len(content))])
        case "garbage":
            path.write_bytes(chance.randbytes(chance.choice((1, 7, 12, 100, 5000))))
        case "zeroes":
            path.write_bytes(bytes(max(len(content), 1)))
        case "huge":
            with path.open("r+b") as file:
                file.truncate(LARGE)
        case "append":
            path.write_bytes(content + chance.randbytes(chance.choice((1, 8, 61, 1000))))
        case "empty":
            path.write_bytes(b"")
        case "remove":
            path.unlink()
        case "numbers" if content:
            # Text files get other numbers, binary ones other bytes at the places where numbers are.
            damaged = bytearray(content)
            for at, byte in enumerate(content):
                if 0x30 <= byte <= 0x39 and chance.random() < 0.3:
                    damaged[at] = chance.choice(b"0123456789-")
            path.write_bytes(damaged)
        case _:
            path.write_bytes(content + content)
    return kind


def test_another_directory_id_than_the_only_voter_has(data: Path) -> None:
    properties = (data / "meta.properties").read_text()
    (data / "meta.properties").write_text(
        re.sub(r"directory\.id=.*", "directory.id=2UajH8CXRymb0G4An0BdIA", properties)
    )
    said = start(data)
    assert said is not None
    assert "meta.properties: directory.id is 2UajH8CXRymb0G4An0BdIA, but the metadata log beside it knows" in said
    (data / "meta.properties").write_text(properties)
    assert start(data) is None


def test_metadata_that_names_no_voter(data: Path) -> None:
    metadata = data / "__cluster_metadata-0"
    for path in metadata.glob("*.checkpoint"):
        path.unlink()
    (metadata / f"{0:020}.log").write_bytes(b"")
    said = start(data)
    assert said is not None
    assert "__cluster_metadata-0 names no voter" in said


def test_fuzzed_files(template: Path, tmp_path: Path) -> None:
    for seed in range(SEEDS):
        data = tmp_path / str(seed)
        shutil.copytree(template, data)
        chance = Random(f"hostile/{seed}")
        if chance.random() < 0.5:
            (data / ".kafka_cleanshutdown").unlink()
        files = files_of(data)
        chosen = chance.sample(files, chance.choice((1, 1, 2, 5)))
        done = [f"{mutate(path, chance)} {path.relative_to(data)}" for path in chosen]
        print(seed, done)
        said = start(data)
        if said is not None:
            assert str(data) in said, f"seed {seed}, {done}: {said!r} names no file"
        shutil.rmtree(data)


@pytest.mark.parametrize(
    "name",
    [
        "00000000000000000000.log.swap",
        "00000000000000000000.index.swap",
        "00000000000000000005.log.cleaned",
        "00000000000000000007.log.deleted",
        "00000000000000000300.log",
        "99999999999999999999.log",
        "00000000000000000300.snapshot",
        "99999999999999999999.snapshot",
        "00000000000000000300.txnindex",
        "leader-epoch-checkpoint.tmp",
        "stranger.txt",
        "١٢٣٤٥٦٧٨٩٠١٢٣٤٥٦٧٨٩٠.log",
    ],
)
@pytest.mark.parametrize("content", [b"", b"\xff" * 100, bytes(1000)])
@pytest.mark.parametrize("is_clean", [True, False])
def test_strange_files_in_a_partition(data: Path, name: str, content: bytes, is_clean: bool) -> None:
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    (data / "plain-0" / name).write_bytes(content)
    said = start(data)
    assert said is None or str(data) in said


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(
    "target", ["/dev/zero", "/dev/full", "nowhere", ".", "00000000000000000000.index", "fifo", "directory"]
)
@pytest.mark.parametrize(
    "name",
    [
        "plain-0/00000000000000000000.log",
        "plain-0/00000000000000000000.index",
        "plain-0",
        "plain-0/leader-epoch-checkpoint",
        "recovery-point-offset-checkpoint",
        "meta.properties",
        "gone-0.0123456789abcdef-delete",
        "strange-3",
    ],
)
def test_links_and_things_that_are_no_files(data: Path, name: str, target: str, is_clean: bool) -> None:
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    path = data / name
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    if target == "fifo":
        os.mkfifo(path)
    elif target == "directory":
        path.mkdir()
    else:
        path.symlink_to(target)
    said = start(data)
    assert said is None or str(data) in said, said


def test_a_link_that_is_to_be_deleted_leaves_what_it_points_to(data: Path, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("kept")
    (data / "t-0.0123456789abcdef-delete").symlink_to(precious)
    assert start(data) is None
    assert (precious / "file").read_text() == "kept"


def test_a_directory_of_another_cluster(data: Path, tmp_path: Path) -> None:
    text = (data / "meta.properties").read_text()
    other = tmp_path / "other"
    other.mkdir()
    lines = [
        "cluster.id=AnotherClusterXXXXXXXX" if line.startswith("cluster.id") else line for line in text.splitlines()
    ]
    (other / "meta.properties").write_text("\n".join(lines) + "\n")
    said = start(data, other)
    assert said is not None
    assert str(other) in said
    assert "AnotherClusterXXXXXXXX" in said


def test_a_directory_of_another_node(data: Path) -> None:
    said = start(data, **{"node.id": "77"})
    assert said is not None
    assert str(data) in said
    assert "77" in said


def test_two_brokers_in_one_directory(data: Path) -> None:
    with Broker(data_dir=data, settings=SETTINGS):
        said = start(data)
    assert said is not None
    assert "another process" in said


def test_a_directory_that_may_not_be_read(data: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    data.chmod(0)
    try:
        said = start(data)
    finally:
        data.chmod(0o755)
    assert said is not None
    assert str(data) in said
