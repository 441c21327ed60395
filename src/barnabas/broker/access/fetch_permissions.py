"""Who may read a partition by Fetch: asked for every partition of a session, since sessions outlive rules.

The other APIs are in ``authorize``; this is apart because a fetch names most of what it wants only once. Only consumers
are asked here: a follower needs a right to the cluster, checked there, which is worth nothing to a consumer.
"""

from __future__ import annotations

from barnabas.broker.access import audit
from barnabas.broker.access.authorizer import Asker
from barnabas.broker.fetching.sessions import Wanted
from barnabas.broker.requests.request import Request
from barnabas.model import errors
from barnabas.model.errors import ApiError
from barnabas.model.ids import ZERO_UUID
from barnabas.security.acl import Operation, ResourceType


def check_read(request: Request, asker: Asker, wanted: Wanted) -> None:
    name = wanted.topic
    if wanted.topic_id != ZERO_UUID:
        topic = request.broker.image.topics.by_id.get(wanted.topic_id)
        if topic is None:
            return  # an id that nobody has: there is nothing to hide
        name = topic.name
    if not asker.may(Operation.READ, ResourceType.TOPIC, name):
        if asker.is_first_refusal(name):  # a consumer asks again and again
            audit.refused(request, asker)
        raise ApiError(errors.TOPIC_AUTHORIZATION_FAILED)
