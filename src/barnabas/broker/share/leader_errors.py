"""Errors of the share coordinator, as the leader of a share-partition passes them to members."""

from __future__ import annotations

from typing import Final

from barnabas.model import errors
from barnabas.model.errors import ApiError

_FENCED: Final = (errors.FENCED_LEADER_EPOCH, errors.FENCED_STATE_EPOCH)
_SAME: Final = (errors.GROUP_ID_NOT_FOUND, errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_LEADER_OR_FOLLOWER)
_UNAVAILABLE: Final = (
    errors.NOT_COORDINATOR,
    errors.COORDINATOR_NOT_AVAILABLE,
    errors.COORDINATOR_LOAD_IN_PROGRESS,
    errors.NETWORK_EXCEPTION,
)
OVER: Final = (*_FENCED, *_SAME)  # errors after which the leader must load its state again


def as_leaders_say(error: ApiError) -> ApiError:
    """An error of the share coordinator as members of the group get it."""
    if error.error in _FENCED:
        return ApiError(errors.NOT_LEADER_OR_FOLLOWER, error.message)
    if error.error in _SAME:
        return error
    if error.error in _UNAVAILABLE:
        return ApiError(errors.COORDINATOR_NOT_AVAILABLE, error.message)
    return ApiError(errors.UNKNOWN_SERVER_ERROR, error.message)
