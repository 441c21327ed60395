"""Mutated frames over a live socket: the broker stays up, its memory stays flat, a good client is not disturbed.

``python tests/fuzz/fuzz_socket.py --frames 1000000 --seed 1`` (or ``make fuzz``). Every frame starts as a valid request
of an API that the broker serves; bytes are flipped, cut, repeated and overwritten with numbers that break parsers.
Behind each frame goes a request for ApiVersions, so that the answer, or the closed connection, shows that it was dealt
with.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from barnabas.broker.requests.routes import ROUTES
from barnabas.wire.api import ApiKey
from barnabas.wire.batch import seal
from barnabas.wire.frame import encode_request
from barnabas.wire.message import Message
from barnabas.wire.messages import request_of
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records import encode_batch
from barnabas.wire.schema import Array, Field, Fixed, Nested

SENTINEL = 0x7EADBEEF
LENGTH_IS_WRONG = 0.05  # of the frames; these need a connection of their own
SECONDS_MAX = 30
PATIENCE_SECONDS = 0.5  # a request may ask the broker to wait; nobody waits with it
GROWTH_KIB_MAX = 50 * 1024
TOPIC = "fuzz"
NULL = object()  # where a field may be null and is not by itself
TEXTS = [TOPIC, TOPIC, TOPIC, "../x", "", "a" * 300, "__consumer_offsets", "1", "\x00"]
NUMBERS = [0, 0, 0, 1, 2, -1, -2, 20]
INTERESTING = [b"\x00", b"\xff", b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff\x0f"]
# What a broker may be asked for in earnest and would then have for ever: topics, partitions, files.
HARMLESS = {
    "validate_only": True,
    "replication_factor": 3,
    "max_wait_ms": 0,
    "timeout_ms": 1,
    "rebalance_timeout_ms": 1,
}
COMPLAINTS = ("handler failed", "Traceback", "Fatal error", "never retrieved")


def framed(message: Message, version: int, correlation_id: int) -> bytes:
    parts = encode_request(message, version, correlation_id=correlation_id, client_id="fuzz")
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]


PROBE = framed(request_of(ApiKey.API_VERSIONS)(), 0, SENTINEL)
CREATE = framed(
    CreateTopicsRequest(
        topics=[CreateTopicsRequest.CreatableTopic(name=TOPIC, num_partitions=2, replication_factor=1)], timeout_ms=5000
    ),
    7,
    0,
)


def requests(chance: random.Random) -> Iterator[tuple[ApiKey, bytes]]:
    """Valid frames of every API and version, with a batch in Produce and a few elements in every array."""
    keys = sorted(ROUTES)
    while True:
        route = ROUTES[chance.choice(keys)]
        version = chance.choice(route.versions)
        yield route.key, framed(filled(route.request, chance, version), version, chance.randrange(1000))


def filled(cls: type[Message], chance: random.Random, version: int) -> Message:
    message = cls()
    for field in cls.fields:
        if field.is_in(version):
            value = _value(field, field.type, chance, version)
            if value is not None:
                setattr(message, field.name, None if value is NULL else value)
    return message


def _value(field: Field, kind: Any, chance: random.Random, version: int) -> Any:
    if field.name in HARMLESS:
        return HARMLESS[field.name]
    if isinstance(kind, Array):
        if field.is_nullable(version) and chance.random() < 0.1:
            return NULL
        elements = [_value(field, kind.element, chance, version) for _ in range(chance.randrange(3))]
        return [element for element in elements if element is not None and element is not NULL]
    if isinstance(kind, Nested):
        return filled(kind.target, chance, version)
    if field.name == "records":
        return _batch(chance)
    if isinstance(kind, Fixed):
        if kind.code not in "bhiq" or chance.random() < 0.4:
            return None
        largest = 2 ** (8 * kind.size_bytes - 1) - 1
        number = chance.choice([*NUMBERS, largest, -largest - 1])
        return max(min(number, largest), -largest - 1)
    if field.is_nullable(version) and chance.random() < 0.1:
        return None if field.default is None else NULL
    return chance.choice(TEXTS) if kind.name == "string" else None


def _batch(chance: random.Random) -> bytes:
    """A batch, often broken inside, with a checksum that fits: what lies behind the checksum is tried too."""
    count = chance.randrange(1, 4)
    data = encode_batch([(0, b"k", b"v" * chance.randrange(100), ())] * count, codec=chance.randrange(5))  # type: ignore[arg-type]
    if chance.random() < 0.7:
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(21, len(data))] = chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        seal(data, 0)
    return bytes(data)


def mutated(frame: bytes, chance: random.Random) -> tuple[bytes, bool]:
    """The frame, broken; and whether its length is a lie."""
    body = bytearray(frame[4:])
    for _ in range(chance.choice((0, 0, 0, 0, 1, 1, 2, 8))):
        position = chance.randrange(len(body)) if body else 0
        match chance.randrange(5):
            case 0:
                body[position : position + 1] = bytes([chance.randrange(256)])
            case 1:
                piece = chance.choice(INTERESTING)
                body[position : position + len(piece)] = piece
            case 2:
                del body[position : position + chance.randrange(1, 8)]
            case 3:
                body[position:position] = bytes(body[position : position + chance.randrange(1, 8)])
            case _:
                body[position:position] = chance.choice(INTERESTING)
    if not body or chance.random() < LENGTH_IS_WRONG:
        size = chance.choice([-1, 0, 1, len(body) + 5, 2**31 - 1, -(2**31), chance.randrange(1 << 20)])
        return struct.pack(">i", size) + body, True
    return struct.pack(">i", len(body)) + body, False


class Attacker(threading.Thread):
    def __init__(self, address: tuple[str, int], seed: int, frames: int) -> None:
        super().__init__(name=f"attacker-{seed}")
        self._address = address
        self._chance = random.Random(seed)
        self._frames = frames
        self._connection: socket.socket | None = None
        self.outcomes: Counter[str] = Counter()
        self.is_done = False  # it is not, if the broker did something that no frame explains

    def run(self) -> None:
        try:
            for _, (_, frame) in zip(range(self._frames), requests(self._chance), strict=False):
                self.outcomes[self._attack(frame)] += 1
            self.is_done = True
        finally:
            self._hang_up()

    @property
    def sent(self) -> int:
        return self.outcomes.total()

    def _attack(self, frame: bytes) -> str:
        broken, is_lie = mutated(frame, self._chance)
        if self._connection is None:
            self._connection = socket.create_connection(self._address, timeout=PATIENCE_SECONDS)
        try:
            self._connection.sendall(broken if is_lie else broken + PROBE)
            if is_lie:
                self._connection.shutdown(socket.SHUT_WR)
            outcome = self._drain(self._connection, is_lie=is_lie)
        except (ConnectionError, BrokenPipeError):
            outcome = "closed"
        except TimeoutError:
            outcome = "waiting"
        if outcome != "answered":
            self._hang_up()
        return outcome

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _drain(self, connection: socket.socket, *, is_lie: bool) -> str:
        """Read until the probe is answered or the connection is closed."""
        wanted = struct.pack(">i", SENTINEL)
        received = bytearray()
        while True:
            data = connection.recv(1 << 20)
            if not data:
                return "closed"
            received += data
            if not is_lie and wanted in received:
                return "answered"


class Target(NamedTuple):
    process: subprocess.Popen[str]
    address: tuple[str, int]
    log: Path

    @property
    def anonymous_kib(self) -> int:
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("RssAnon"):
                return int(line.split()[1])
        raise RuntimeError("no RssAnon")


@contextlib.contextmanager
def target(directory: str) -> Iterator[Target]:
    """A broker in a process of its own, whose log is read afterwards."""
    log = Path(directory) / "log"
    command = [sys.executable, "-m", "barnabas", "up", "--port", "0", "--data-dir", f"{directory}/data"]
    command += ["--set", "auto.create.topics.enable=false"]
    with (
        log.open("w") as stderr,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True) as process,
    ):
        try:
            assert process.stdout is not None
            ready = process.stdout.readline().split()
            assert ready[:1] == ["READY"], f"the broker did not start: {log.read_text()}"
            host, _, port = ready[1].rpartition(":")
            with socket.create_connection((host, int(port)), timeout=SECONDS_MAX) as connection:
                connection.sendall(CREATE)
                assert connection.recv(1 << 16)
            yield Target(process, (host, int(port)), log)
        finally:
            process.terminate()
            process.wait(SECONDS_MAX)


def disturbed_ms(address: tuple[str, int], attackers: list[Attacker]) -> float:
    """How long a good client waited for an answer at most, while the attack went on.

    It also makes the topic again, whenever a frame has deleted it.
    """
    worst_ms = 0.0
    with socket.create_connection(address, timeout=SECONDS_MAX) as good:
        while any(attacker.is_alive() for attacker in attackers):
            good.sendall(CREATE)
            assert good.recv(1 << 16), "the good client was cut off"
            asked = time.monotonic()
            good.sendall(PROBE)
            assert good.recv(1 << 16), "the good client was cut off"
            worst_ms = max(worst_ms, 1000 * (time.monotonic() - asked))
            time.sleep(0.01)
    return worst_ms


def attack(frames: int, seed: int, *, threads: int = 2) -> str:
    """Run it; a sentence with the figures, or an AssertionError."""
    with tempfile.TemporaryDirectory() as directory, target(directory) as broker:
        warm_up = Attacker(broker.address, seed - 1, min(frames, 5000))
        warm_up.start()
        warm_up.join()
        assert warm_up.is_done
        before = broker.anonymous_kib
        started = time.monotonic()
        attackers = [Attacker(broker.address, seed + number, frames // threads) for number in range(threads)]
        for attacker in attackers:
            attacker.start()
        worst_ms = disturbed_ms(broker.address, attackers)
        seconds = time.monotonic() - started
        assert broker.process.poll() is None, "the broker died"
        for attacker in attackers:
            attacker.join()
            assert attacker.is_done
        grown = broker.anonymous_kib - before
        log = broker.log.read_text()
        for complaint in COMPLAINTS:
            assert complaint not in log, log[log.index(complaint) :][:4000]
        assert grown < GROWTH_KIB_MAX, f"the broker grew by {grown} KiB"
        outcomes = sum((attacker.outcomes for attacker in attackers), Counter())
        return (
            f"{outcomes.total()} mutated frames in {seconds:.0f} s ({dict(sorted(outcomes.items()))}): broker up, "
            f"memory {before} KiB + {grown} KiB, a good client waited {worst_ms:.0f} ms at most"
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    print(attack(options.frames, options.seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
