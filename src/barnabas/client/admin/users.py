"""The users of SCRAM as the admin client sees them: who there is, new passwords, and who is gone.

A password is salted here, off the event loop, and never leaves the process.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from barnabas.client.admin.calls import AdminCalls, problem
from barnabas.model.errors import ApiError
from barnabas.security.scram import BY_NUMBER, ITERATIONS_DEFAULT, SALT_BYTES, Mechanism
from barnabas.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from barnabas.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from barnabas.world.world import World


class UserCredential(NamedTuple):
    user: str
    mechanism: str
    iterations: int


class UserAdmin(AdminCalls):
    async def describe_users(self) -> tuple[UserCredential, ...]:
        answer = await self._broker(
            None, DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse
        )
        error = problem(answer.error_code, answer.error_message, about="users")
        if error is not None:
            raise error
        return tuple(
            UserCredential(row.user, BY_NUMBER[info.mechanism].name, info.iterations)
            for row in sorted(answer.results, key=lambda row: row.user)
            for info in row.credential_infos
            if info.mechanism in BY_NUMBER
        )

    async def set_password(
        self, world: World, user: str, password: str, mechanism: Mechanism, *, iterations: int = ITERATIONS_DEFAULT
    ) -> None:
        salt = world.entropy.token(SALT_BYTES)
        salted = await world.workers.run(mechanism.salted, password, salt, iterations)
        row = AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=user, mechanism=mechanism.number, iterations=iterations, salt=salt, salted_password=salted
        )
        await self._alter(AlterUserScramCredentialsRequest(upsertions=[row]))

    async def remove_user(self, user: str, mechanisms: Iterable[Mechanism]) -> None:
        for mechanism in mechanisms:
            row = AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=user, mechanism=mechanism.number)
            await self._alter(AlterUserScramCredentialsRequest(deletions=[row]))

    async def _alter(self, message: AlterUserScramCredentialsRequest) -> None:
        answer = await self._controller(message, AlterUserScramCredentialsResponse)
        for result in answer.results:
            error: ApiError | None = problem(result.error_code, result.error_message, about=result.user)
            if error is not None:
                raise error
