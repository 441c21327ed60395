"""AlterUserScramCredentials and DescribeUserScramCredentials: the users of SCRAM and what is kept of their passwords.

Passwords arrive salted; what is written to the log is derived from that and cannot sign anyone in. Checking a sign-in
against it is ``security.scram``'s business.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from barnabas.metadata.decision import Decision, check_size
from barnabas.metadata.image import ClusterImage
from barnabas.metadata.records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from barnabas.metadata.security_image import SecurityImage
from barnabas.model.errors import (
    DUPLICATE_RESOURCE,
    RESOURCE_NOT_FOUND,
    UNACCEPTABLE_CREDENTIAL,
    UNSUPPORTED_SASL_MECHANISM,
    ApiError,
)
from barnabas.security.scram import BY_NUMBER, ITERATIONS_MAX, ITERATIONS_MIN, Credential
from barnabas.wire.message import Message
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)

Entry: TypeAlias = (
    AlterUserScramCredentialsRequest.ScramCredentialDeletion | AlterUserScramCredentialsRequest.ScramCredentialUpsertion
)

_TWICE: Final = "the request names the user twice"


def alter_user_scram_credentials(
    image: ClusterImage, request: AlterUserScramCredentialsRequest
) -> Decision[AlterUserScramCredentialsResponse]:
    """Each user succeeds or fails alone; one that is named twice fails."""
    outcomes: dict[str, Message | ApiError] = {}
    entries: list[Entry] = [*request.deletions, *request.upsertions]
    for entry in entries:
        if entry.name in outcomes:
            outcomes[entry.name] = ApiError(DUPLICATE_RESOURCE, _TWICE)
            continue
        try:
            outcomes[entry.name] = _record(image, entry)
        except ApiError as error:
            outcomes[entry.name] = error
    check_size(len(outcomes))
    row = AlterUserScramCredentialsResponse.AlterUserScramCredentialsResult
    results = [
        row(user=user, error_code=outcome.error.code, error_message=outcome.message)
        if isinstance(outcome, ApiError)
        else row(user=user, error_message=None)
        for user, outcome in outcomes.items()
    ]
    records = [outcome for outcome in outcomes.values() if isinstance(outcome, Message)]
    return Decision(records, AlterUserScramCredentialsResponse(results=results))


def _record(
    image: ClusterImage,
    entry: Entry,
) -> Message:
    if not entry.name:
        raise ApiError(UNACCEPTABLE_CREDENTIAL, "a user has a name")
    mechanism = BY_NUMBER.get(entry.mechanism)
    if mechanism is None:
        raise ApiError(
            UNSUPPORTED_SASL_MECHANISM, f"SCRAM-SHA-256 (1) and SCRAM-SHA-512 (2) are offered, not {entry.mechanism}"
        )
    if isinstance(entry, AlterUserScramCredentialsRequest.ScramCredentialDeletion):
        if (entry.mechanism, entry.name) not in image.security.scram:
            raise ApiError(RESOURCE_NOT_FOUND, f"the user {entry.name!r} has no credential for {mechanism.name}")
        return RemoveUserScramCredentialRecord(name=entry.name, mechanism=entry.mechanism)
    if entry.iterations < ITERATIONS_MIN:
        raise ApiError(
            UNACCEPTABLE_CREDENTIAL, f"{entry.iterations} iterations are too few; {ITERATIONS_MIN} is the least"
        )
    if entry.iterations > ITERATIONS_MAX:
        raise ApiError(
            UNACCEPTABLE_CREDENTIAL, f"{entry.iterations} iterations are too many; {ITERATIONS_MAX} is the most"
        )
    if not entry.salted_password or not entry.salt:
        raise ApiError(UNACCEPTABLE_CREDENTIAL, "a credential has a salt and a salted password")
    found = Credential.of(mechanism, bytes(entry.salted_password), bytes(entry.salt), entry.iterations)
    return UserScramCredentialRecord(name=entry.name, mechanism=entry.mechanism, **found._asdict())


def describe_user_scram_credentials(
    security: SecurityImage, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Which mechanisms users have, and with how many iterations. No users named means all."""
    by_user: dict[str, list[int]] = {}
    for mechanism, user in sorted(security.scram):
        by_user.setdefault(user, []).append(mechanism)
    asked = [entry.name for entry in request.users or ()]
    result = DescribeUserScramCredentialsResponse.DescribeUserScramCredentialsResult
    info = DescribeUserScramCredentialsResponse.CredentialInfo
    response = DescribeUserScramCredentialsResponse(error_message=None)
    for user in dict.fromkeys(asked or sorted(by_user)):
        row = result(user=user, error_message=None)
        response.results.append(row)
        if asked.count(user) > 1:
            row.error_code = DUPLICATE_RESOURCE.code
            row.error_message = _TWICE
        elif user not in by_user:
            row.error_code = RESOURCE_NOT_FOUND.code
            row.error_message = f"the user {user!r} has no credentials for SCRAM"
        else:
            row.credential_infos = [
                info(mechanism=mechanism, iterations=security.scram[mechanism, user].iterations)
                for mechanism in by_user[user]
            ]
    return response
