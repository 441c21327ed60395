"""The part of ``kafka-configs.sh`` that is about users, clients and addresses: passwords of SCRAM, and quotas."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from barnabas.ops.failure import Failure
from barnabas.security.scram import ITERATIONS_DEFAULT, MECHANISMS

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

_SCRAM: Final = re.compile(r"\[(?:iterations=(\d+),)?password=(.*)\]")


async def run(
    admin: Admin, action: str, kind: str, name: str | None, added: dict[str, str], deleted: list[str]
) -> None:
    if action == "describe":
        await _describe(admin, kind, name)
        return
    if name is None:
        raise Failure("--entity-name or --entity-default must be specified with --alter")
    limits: dict[str, float | None] = dict.fromkeys(key for key in deleted if key not in MECHANISMS)
    for key, value in added.items():
        if key in MECHANISMS:
            await _set_password(admin, name, key, value)
        else:
            limits[key] = _number(key, value)
    for key in deleted:
        if key in MECHANISMS:
            await admin.remove_user(name, [MECHANISMS[key]])
    if limits:
        await admin.alter_quotas({kind: name or None}, limits)
    print(f"Completed updating config for {kind.removesuffix('-id')} {name or '<default>'}.")


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise Failure(f"Invalid value for quota {key}: {value!r} is no number") from None


async def _set_password(admin: Admin, user: str, mechanism: str, value: str) -> None:
    from barnabas.world.real import real_world

    found = _SCRAM.fullmatch(value)
    if found is None:
        raise Failure(f"{mechanism}: say {mechanism}=[iterations=8192,password=SECRET]")
    world = real_world()
    iterations = int(found[1] or ITERATIONS_DEFAULT)
    try:
        await admin.set_password(world, user, found[2], MECHANISMS[mechanism], iterations=iterations)
    finally:
        await world.workers.close()


async def _describe(admin: Admin, kind: str, name: str | None) -> None:
    quotas = await admin.describe_quotas(None if name is None else {kind: name or None}, kinds=() if name else (kind,))
    for quota in quotas:
        limits = ", ".join(f"{key}={value}" for key, value in sorted(quota.limits.items()))
        whose = ", ".join(f"{part} '{of or '<default>'}'" for part, of in quota.entity.items())
        print(f"Quota configs for {whose.replace('user ', 'user-principal ')} are {limits}")
    if kind != "user":
        return
    for entry in await admin.describe_users():
        if name in (None, entry.user):
            what = f"{entry.mechanism}=iterations={entry.iterations}"
            print(f"SCRAM credential configs for user-principal '{entry.user}' are {what}")
