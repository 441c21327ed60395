"""The permission of a consumer to read a partition: checked for each fetch, since a fetch session outlives ACL changes.

The permission of followers (CLUSTER_ACTION) is checked before the handler, as the other APIs' permissions are. A fetch
of a session does not name its partitions again, so those of a consumer are checked when they are read.
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
            return  # no topic has this id: there is nothing to hide
        name = topic.name
    if not asker.may(Operation.READ, ResourceType.TOPIC, name):
        if asker.is_first_refusal(name):  # a consumer repeats its fetches
            audit.refused(request, asker)
        raise ApiError(errors.TOPIC_AUTHORIZATION_FAILED)
