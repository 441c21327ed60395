"""Members that come, go, die, dawdle and lose answers, topics that come and grow, brokers that take over: by seed.

After every step no two members may use a partition at the same time, as the members themselves see it, unless one of
them was thrown out and has yet to hear of it: its commits are refused. When the trouble ends the group settles:
everything wanted is in use, and nothing more is written.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[1] / "unit" / "coordinator")]
from consumer_play import GROUP, Play  # noqa: E402

from barnabas.model import errors  # noqa: E402

STEPS = 250
SESSION_MS = 45_000
HEARTBEAT_MS = 5_000
REBALANCE_MS = 30_000
FENCING = {
    errors.FENCED_MEMBER_EPOCH.code,
    errors.UNKNOWN_MEMBER_ID.code,
    errors.GROUP_ID_NOT_FOUND.code,
    errors.FENCED_INSTANCE_ID.code,
}


class Client:
    """A member as it sees itself: it uses partitions from when it is told of them until it stops of its own accord."""

    def __init__(self, play: Play, name: str, rng: random.Random) -> None:
        self.play = play
        self.name = name
        self.rng = rng
        self.instance = name.split("#")[0] if rng.random() < 0.3 else None
        self.names: list[str] | None = None
        self.pattern = ""
        self.choose()
        self.epoch = 0
        self.uses: dict[str, set[int]] = {}
        self.told: dict[str, set[int]] = {}
        self.says_all = True
        self.last_heard_ms = play.now_ms

    def choose(self) -> None:
        topics = sorted(self.play.counts) or ["none"]
        self.names = self.rng.sample(topics, self.rng.randint(0 if self.pattern else 1, len(topics)))
        self.pattern = self.rng.choice(["", "", "t[0-9]", "t.*", "x-.*"])
        self.says_all = True

    def heartbeat(self, *, is_answer_lost: bool = False) -> None:
        fields = {"instance_id": self.instance} if self.instance else {}
        is_joining = self.epoch == 0
        if is_joining or self.says_all:
            fields |= {
                "subscribed_topic_names": self.names,
                "subscribed_topic_regex": self.pattern,
                "rebalance_timeout_ms": REBALANCE_MS,
            }
        has = {} if is_joining else {topic: sorted(used) for topic, used in self.uses.items() if used}
        answer = self.play.ask(self.name, self.epoch, has, **fields)
        if is_answer_lost:
            self.says_all = True
            return
        if isinstance(answer, int):
            assert answer in FENCING | {errors.UNRELEASED_INSTANCE_ID.code}, answer
            self.stop()
            return
        self.says_all = False
        self.last_heard_ms = self.play.now_ms
        epoch, assignment = answer
        assert epoch >= self.epoch
        self.epoch = epoch
        if assignment is not None:
            self.told = {topic: set(partitions) for topic, partitions in assignment.items()}
            # What is new is used at once; what is gone only when the application has finished with it.
            for topic, partitions in self.told.items():
                self.uses.setdefault(topic, set()).update(partitions)

    def revoke(self) -> None:
        for topic in list(self.uses):
            self.uses[topic] &= self.told.get(topic, set())

    def stop(self) -> None:
        self.epoch, self.uses, self.told, self.says_all = 0, {}, {}, True

    def is_accepted(self) -> bool:
        """Whether the coordinator would take a commit from this client."""
        group = self.play.table.get(GROUP)
        member = group.members.get(self.name) if group is not None else None
        return member is not None and self.epoch in (member.member_epoch, member.previous_member_epoch)

    def leave(self) -> None:
        is_static = self.instance is not None and self.rng.random() < 0.5
        fields = {"instance_id": self.instance} if self.instance else {}
        if self.epoch > 0:
            self.play.ask(self.name, -2 if is_static else -1, **fields)
        self.stop()

    def obey_time(self) -> None:
        """A client stops by itself when it has not reached the coordinator for a session."""
        if self.play.now_ms - self.last_heard_ms >= SESSION_MS:
            self.stop()


def check(clients: list[Client]) -> None:
    used: dict[tuple[str, int], str] = {}
    for client in filter(Client.is_accepted, clients):
        for topic, partitions in client.uses.items():
            for partition in partitions:
                other = used.setdefault((topic, partition), client.name)
                assert other == client.name, f"{topic}-{partition} is used by {other} and {client.name}"


def check_group(play: Play) -> None:
    for group in play.table.values():
        owners: dict[tuple[bytes, int], str] = {}
        for member in group.members.values():
            for owned in (member.assigned, member.pending_revocation):
                for topic, partitions in owned.items():
                    for partition in partitions:
                        assert owners.setdefault((topic, partition), member.member_id) == member.member_id
                        assert group.owner_of(topic, partition) == member.member_id


class Story:
    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.play = Play({"t1": 3, "t2": 2}, assignment_interval_ms=self.rng.choice([0, 0, 1000]))
        self.clients: list[Client] = []
        self.count = 0

    def step(self) -> None:
        rng, play = self.rng, self.play
        match rng.choices(
            ["beat", "lost", "revoke", "time", "join", "leave", "die", "topics", "choose", "restart"],
            [40, 5, 15, 15, 8, 3, 2, 3, 3, 1],
        )[0]:
            case "beat" | "lost" as how if self.clients:
                client = rng.choice(self.clients)
                # A member whose partitions were taken from it because it was slow must have stopped using them.
                client.heartbeat(is_answer_lost=how == "lost" and client.epoch > 0)
            case "revoke" if self.clients:
                rng.choice(self.clients).revoke()
            case "time":
                play.advance(rng.choice([100, 1_000, 3_000, 10_000]))
                for client in self.clients:
                    client.obey_time()
            case "join" if len(self.clients) < 7:
                self.count += 1
                self.clients.append(Client(play, f"i{rng.randint(0, 3)}#{self.count}", rng))
            case "leave" if self.clients:
                client = self.clients.pop(rng.randrange(len(self.clients)))
                client.leave()
            case "die" if self.clients:
                self.clients.pop(rng.randrange(len(self.clients)))
            case "topics":
                self.change_topics()
            case "choose" if self.clients:
                rng.choice(self.clients).choose()
            case "restart":
                play.restart(is_compacted=rng.random() < 0.5)

    def change_topics(self) -> None:
        counts = dict(self.play.counts)
        name = self.rng.choice(["t1", "t2", "t3", "x-1"])
        if name in counts and self.rng.random() < 0.2:
            del counts[name]
        else:
            counts[name] = counts.get(name, 0) + self.rng.randint(1, 3)
        self.play.set_topics(counts)

    def settle(self) -> None:
        for _ in range(40):
            self.play.advance(HEARTBEAT_MS)
            for client in self.clients:
                client.heartbeat()
                client.revoke()
                check(self.clients)
        wanted: set[tuple[str, int]] = set()
        for client in self.clients:
            member = self.play.group.members[client.name] if client.epoch else None
            if member is None:
                continue
            names = set(member.subscribed_topic_names)
            if member.subscribed_topic_regex:
                names |= self.play.group.patterns[member.subscribed_topic_regex].topics
            wanted |= {(name, p) for name in names for p in range(self.play.counts.get(name, 0))}
        used = {(topic, p) for client in self.clients for topic, partitions in client.uses.items() for p in partitions}
        assert used == wanted
        if self.clients:
            assert self.play.group.state == "Stable"
            written = len(self.play.log)
            for client in self.clients:
                client.heartbeat()
            assert len(self.play.log) == written, "a settled group writes nothing"


@pytest.mark.parametrize("first_seed", range(0, 100, 20))
def test_no_partition_is_ever_used_by_two_and_all_are_used_in_the_end(first_seed: int) -> None:
    for seed in range(first_seed, first_seed + 20):
        story = Story(seed)
        try:
            for _ in range(STEPS):
                story.step()
                check(story.clients)
                check_group(story.play)
            story.settle()
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}") from error
