"""What the members of a group want, as topics that exist: names and patterns in, topics out.

Patterns come from the network, so they are RE2's: they take time in proportion to the name, whatever they say, and
both their length and the size of what they compile to are bounded. Resolving many names is cut into slices, each short
enough for the loop. Who wants what is in :mod:`barnabas.coordinator.consumer.group`, which calls this.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import re2

from barnabas.metadata.topics_image import TopicsImage
from barnabas.model import errors
from barnabas.model.errors import ApiError

PATTERN_LENGTH_MAX: Final = 4096
PATTERN_MEMORY_BYTES_MAX: Final = 512 * 1024  # of which the program gets a quarter
# About a microsecond each: one for the call and, at worst, one for each hundred of the program's steps over the name.
SLICE_COST_MAX: Final = 2000
MATCH_COST: Final = 3
PROGRAM_STEPS_PER_COST: Final = 100


class ResolvedPattern(NamedTuple):
    """The topics that a pattern stood for, in which version of the metadata, and when it was found out."""

    topics: frozenset[str]
    version: int
    timestamp_ms: int


UNRESOLVED: Final = ResolvedPattern(frozenset(), -1, -1)


def _options() -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = PATTERN_MEMORY_BYTES_MAX
    return options


_OPTIONS: Final = _options()


def compiled(pattern: str) -> Any:
    """The pattern, ready to match; INVALID_REGULAR_EXPRESSION if it is none, or too large. The library keeps 128."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise ApiError(
            errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex has {len(pattern)} characters; {PATTERN_LENGTH_MAX} are allowed",
        )
    try:
        return re2.compile(pattern, _OPTIONS)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if error.args else "no reason given"
        raise ApiError(
            errors.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex {pattern!r} is no pattern: {reason}",
        ) from None


class Resolution:
    """Finds out which topics some patterns stand for, a slice at a time."""

    def __init__(
        self,
        patterns: Iterable[str],
        topics: TopicsImage,
        *,
        version: int,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        """Topics that the client may not describe are left out, if ``may_describe`` says which."""
        self.version = version
        self._may_describe = may_describe
        self._compiled: list[tuple[str, Any]] = []
        self._found: dict[str, set[str]] = {}
        for pattern in sorted(patterns):
            self._found[pattern] = set()
            try:
                self._compiled.append((pattern, compiled(pattern)))
            except ApiError:
                # It was valid when a member sent it, to another version of the library: it stands for nothing here.
                continue
        self._names = iter(sorted(topics.by_name))
        self.is_done = False

    def proceed(self) -> bool:
        """Match names until a slice is used up; whether all are done."""
        cost = 0
        for name in self._names:
            for pattern, matcher in self._compiled:
                if matcher.fullmatch(name) is not None and (self._may_describe is None or self._may_describe(name)):
                    self._found[pattern].add(name)
                cost += MATCH_COST + matcher.programsize * len(name) // PROGRAM_STEPS_PER_COST
            if cost >= SLICE_COST_MAX:
                return False
        self.is_done = True
        return True

    def result(self, now_ms: int) -> dict[str, ResolvedPattern]:
        assert self.is_done
        return {
            pattern: ResolvedPattern(frozenset(names), self.version, now_ms) for pattern, names in self._found.items()
        }


def metadata_hash(names: Iterable[str], topics: TopicsImage) -> int:
    """A number that changes when one of the topics comes, goes or grows; 0 if none of them exists.

    It goes into the group's line. Kafka has a hash of its own there: a group that is taken over is assigned once more.
    """
    known = [topics.by_name[name] for name in sorted(set(names)) if name in topics]
    if not known:
        return 0
    digest = hashlib.blake2b(digest_size=8)
    for topic in known:
        digest.update(b"%b%d:%b" % (topic.id, len(topic.partitions), topic.name.encode()))
    return int.from_bytes(digest.digest(), "big", signed=True)


def subscribed_names(
    subscriptions: Iterable[tuple[tuple[str, ...], str]], resolved: Mapping[str, ResolvedPattern]
) -> set[str]:
    """The names of all topics that any of the subscriptions includes, existing or not."""
    names: set[str] = set()
    for listed, pattern in subscriptions:
        names.update(listed)
        if pattern:
            names |= resolved.get(pattern, UNRESOLVED).topics
    return names
