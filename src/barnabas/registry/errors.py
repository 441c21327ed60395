"""The errors of the registry, with the codes that clients of Confluent's API branch on."""

from __future__ import annotations

from typing import Final

from barnabas.rest.errors import RestError

NOT_FOUND: Final = 404
CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
SERVER_ERROR: Final = 500
SUBJECT_NOT_FOUND: Final = 40401
VERSION_NOT_FOUND: Final = 40402
SCHEMA_NOT_FOUND: Final = 40403
INCOMPATIBLE: Final = 409
INVALID_SCHEMA: Final = 42201
INVALID_VERSION: Final = 42202
INVALID_LEVEL: Final = 42203
INVALID_MODE: Final = 42204
NOT_PERMITTED: Final = 42205
REFERENCE_EXISTS: Final = 42206
INVALID_SUBJECT: Final = 42208
SCHEMA_TOO_LARGE: Final = 42209
CONTEXT_NOT_EMPTY: Final = 42211
STORE_ERROR: Final = 50001
TIMED_OUT: Final = 50002
FORWARDING_FAILED: Final = 50003
NO_LEADER: Final = 50004


def subject_not_found(subject: str) -> RestError:
    return RestError(NOT_FOUND, f"Subject '{subject}' not found.", code=SUBJECT_NOT_FOUND)


def version_not_found(version: int | str) -> RestError:
    return RestError(NOT_FOUND, f"Version {version} not found.", code=VERSION_NOT_FOUND)


def schema_not_found(schema_id: int | str | None = None) -> RestError:
    named = "" if schema_id is None else f" {schema_id}"
    return RestError(NOT_FOUND, f"Schema{named} not found", code=SCHEMA_NOT_FOUND)


def subject_soft_deleted(subject: str) -> RestError:
    return RestError(NOT_FOUND, f"Subject '{subject}' is soft-deleted; delete it with permanent=true", code=40404)


def subject_not_soft_deleted(subject: str) -> RestError:
    message = f"Subject '{subject}' is not soft-deleted; delete it without permanent=true first"
    return RestError(NOT_FOUND, message, code=40405)


def version_soft_deleted(subject: str, version: int) -> RestError:
    message = f"Subject '{subject}' Version {version} is soft-deleted; delete it with permanent=true"
    return RestError(NOT_FOUND, message, code=40406)


def version_not_soft_deleted(subject: str, version: int) -> RestError:
    message = f"Subject '{subject}' Version {version} is not soft-deleted; delete it without permanent=true first"
    return RestError(NOT_FOUND, message, code=40407)


def no_subject_config(subject: str) -> RestError:
    message = f"Subject '{subject}' does not have subject-level compatibility configured"
    return RestError(NOT_FOUND, message, code=40408)


def no_subject_mode(subject: str) -> RestError:
    return RestError(NOT_FOUND, f"Subject '{subject}' does not have subject-level mode configured", code=40409)


def incompatible(subject: str, messages: list[str]) -> RestError:
    details = ", ".join(messages)
    message = f'the schema is incompatible with an earlier schema of subject "{subject}", details: [{details}]'
    return RestError(CONFLICT, message, code=INCOMPATIBLE)


def invalid_schema(reason: str) -> RestError:
    return RestError(UNPROCESSABLE, f"Invalid schema: {reason}", code=INVALID_SCHEMA)


def invalid_version(version: str) -> RestError:
    message = f"The version '{version}' is not a whole number from 1 to 2147483647, nor 'latest'"
    return RestError(UNPROCESSABLE, message, code=INVALID_VERSION)


def invalid_level(level: object, known: tuple[str, ...]) -> RestError:
    message = f"Invalid compatibility level {level!r}: must be one of {', '.join(known)}"
    return RestError(UNPROCESSABLE, message, code=INVALID_LEVEL)


def invalid_mode(mode: object, known: tuple[str, ...]) -> RestError:
    return RestError(UNPROCESSABLE, f"Invalid mode {mode!r}: must be one of {', '.join(known)}", code=INVALID_MODE)


def not_permitted(reason: str) -> RestError:
    return RestError(UNPROCESSABLE, reason, code=NOT_PERMITTED)


def reference_exists(subject: str, version: int) -> RestError:
    message = f"One or more references exist to the schema {{subject={subject},version={version}}}"
    return RestError(UNPROCESSABLE, message, code=REFERENCE_EXISTS)


def invalid_subject(subject: str) -> RestError:
    return RestError(UNPROCESSABLE, f"The subject name {subject!r} is not valid", code=INVALID_SUBJECT)


def too_large(size: int, limit: int) -> RestError:
    message = f"the schema has {size} bytes; at most {limit} are accepted"
    return RestError(UNPROCESSABLE, message, code=SCHEMA_TOO_LARGE)


def store_failed(reason: str) -> RestError:
    return RestError(SERVER_ERROR, reason, code=STORE_ERROR)


def timed_out(reason: str) -> RestError:
    return RestError(SERVER_ERROR, reason, code=TIMED_OUT)


def forwarding_failed(reason: str) -> RestError:
    return RestError(SERVER_ERROR, reason, code=FORWARDING_FAILED)


def no_leader() -> RestError:
    return RestError(SERVER_ERROR, "the registry has no leader at the moment; try again", code=NO_LEADER)
