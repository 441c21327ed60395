"""What a reader is told when the disk, or what is on it, has gone bad: an error of that one partition."""

from __future__ import annotations

from barnabas.model import errors
from barnabas.model.errors import ApiError, CorruptBatch
from barnabas.observe.log import logger
from barnabas.replication.partition import Partition
from barnabas.world.disk import DiskFailure

log = logger("damage")


def as_api_error(error: ApiError | DiskFailure | CorruptBatch, partition: Partition | None) -> ApiError:
    """What went wrong with reading a partition; a disk that fails is given up."""
    if isinstance(error, DiskFailure):
        if partition is not None:
            partition.log.reader.failed(error)
        return ApiError(errors.KAFKA_STORAGE_ERROR, str(error))
    if isinstance(error, CorruptBatch):
        log.error("a log is damaged", reason=error)
        return ApiError(errors.CORRUPT_MESSAGE, str(error))
    return error
