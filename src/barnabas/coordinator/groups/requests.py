"""What a group shard is asked, beyond the wire's own messages: who asks, and news of the cluster.

A handler puts the message that a client sent into a :class:`GroupRequest`; the shard answers with the response message.
Ids that need chance are made outside and passed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from barnabas.model.ids import Uuid
from barnabas.wire.message import Message


class GroupRequest(NamedTuple):
    message: Message
    version: int
    client_id: str = ""
    client_host: str = ""
    new_member_id: str = ""  # for whoever needs one
    topic_ids: Mapping[str, Uuid] = {}  # of the topics in the message, as far as they are known
    may_describe: Callable[[str], bool] | None = None  # whether the client may see a topic; None: it may see all


class ProtocolRequest(NamedTuple):
    """A request of the broker itself to one protocol, which no client sends."""

    group_type: str
    content: object


class TopicsDeleted(NamedTuple):
    """Topics are gone, and with them what was committed for them."""

    names: frozenset[str]
