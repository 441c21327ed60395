"""Which texts a debug bundle has, and the archive that they become; nothing that is known to be secret is in it.

Everything is asked over one connection, one question after the other: the cluster may be in trouble already.
``manifest.json`` says of every question how it went. ``debug.py`` is the command, ``debug_steps.py`` takes each text,
``redaction.py`` cleans it.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.cli.files.debug_steps import Taken, as_json, page, plain, tail, take
from barnabas.cli.files.redaction import Redaction
from barnabas.cli.serve.detach import LOG_FILE
from barnabas.cli.serve.running import Running, find_running
from barnabas.cli.terminal.verbs import now_ms
from barnabas.client.admin.configs import ConfigEntry, Resource, ResourceKind
from barnabas.model.errors import ApiError
from barnabas.model.version import __version__
from barnabas.ops.failure import Failure

if TYPE_CHECKING:
    from barnabas.client.admin.client import Admin

BROKERS_MAX: Final = 20
GROUPS_MAX: Final = 200
DOCTOR_SECONDS: Final = 1.0
PACKAGES: Final = (
    "uvloop",
    "cramjam",
    "google-crc32c",
    "fastavro",
    "protobuf",
    "msgspec",
    "pyarrow",
    "pyspark",
    "rich",
)
PAGES: Final = ("metrics", "readyz")
LOG_SETTING: Final = "barnabas.log.file"
READ_ME: Final = """\
What `barnabas debug bundle` found: the state of a cluster, for somebody who is asked to help.

manifest.json says of each file where it comes from, how long it took and what went wrong. Names of topics, groups,
clients, hosts and directories are in here; no records, no passwords, no keys. Look through it before you pass it on.
"""


class Asked(NamedTuple):
    """What the one who calls said."""

    data_dir: Path
    addresses: Sequence[str]  # of brokers' HTTP ports
    seconds_max: float  # for each step


class Collection:
    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._log_files: list[str] = []
        self.taken: list[Taken] = []

    async def _take(self, name: str, source: str, ask: Callable[[], Awaitable[Any]]) -> None:
        async def text() -> str:
            found = await ask()
            return found if isinstance(found, str) else as_json(found)

        self.taken.append(await take(name, source, text, seconds_max=self._asked.seconds_max))

    async def of_cluster(self, admin: Admin) -> None:
        from barnabas.cli.cluster.cluster import findings

        questions: dict[str, tuple[str, Callable[[], Awaitable[Any]]]] = {
            "cluster.json": ("DescribeCluster", admin.describe_cluster),
            "features.json": ("ApiVersions", admin.describe_features),
            "topics.json": ("Metadata", lambda: admin.list_topics(include_internal=True)),
            "topic-settings.json": ("DescribeConfigs", lambda: _topic_settings(admin)),
            "broker-settings.json": ("DescribeConfigs", lambda: self._broker_settings(admin)),
            "directories.json": ("DescribeLogDirs", lambda: _directories(admin)),
            "quotas.json": ("DescribeClientQuotas", admin.describe_quotas),
            "groups.json": ("DescribeGroups, OffsetFetch, ListOffsets", lambda: _groups(admin)),
            "transactions.json": ("DescribeTransactions", lambda: _transactions(admin)),
            # What only a controller knows comes last: without one, these wait, and so does what is asked after them.
            "doctor.json": ("barnabas doctor", lambda: _doctor(admin)),
            "quorum.json": ("DescribeQuorum", admin.describe_quorum),
            "health.json": ("barnabas cluster health", lambda: findings(admin)),
            "reassignments.json": ("ListPartitionReassignments", admin.list_reassignments),
        }
        for name, (source, ask) in questions.items():
            await self._take(name, source, ask)

    async def _broker_settings(self, admin: Admin) -> dict[str, Any]:
        cluster = await admin.describe_cluster()
        alive = [broker.id for broker in cluster.brokers if broker.id not in cluster.fenced]
        found: dict[str, Any] = {}
        for number in alive[:BROKERS_MAX]:
            resource = Resource(ResourceKind.BROKER, str(number))
            entries = (await admin.describe_configs([resource]))[resource]
            if not isinstance(entries, ApiError) and LOG_SETTING in entries:
                self._log_files += filter(None, [entries[LOG_SETTING].value])
            found[str(number)] = (
                entries if isinstance(entries, ApiError) else [_entry(each) for each in entries.values()]
            )
        return found

    async def of_here(self) -> None:
        """What this machine knows: versions, brokers that run here, their pages and their logs."""
        self.taken.append(Taken("versions.json", "this process", as_json(_versions())))
        running: list[Running] = []

        async def status() -> list[Running]:
            running.extend(find_running(self._asked.data_dir))
            return running

        await self._take("status.json", f"brokers of {self._asked.data_dir}", status)
        addresses = dict.fromkeys([*self._asked.addresses, *(each.http for each in running if each.http)])
        for number, address in enumerate(addresses, 1):
            base = (address if "://" in address else f"http://{address}").rstrip("/")
            for name in PAGES:
                await self._take(f"{name}-{number}.txt", f"{base}/{name}", partial(self._page, f"{base}/{name}"))
        paths = [self._asked.data_dir / LOG_FILE, *(Path(each.directory) / LOG_FILE for each in running)]
        paths += map(Path, self._log_files)
        known = dict.fromkeys(path.absolute() for path in paths if path.is_file())
        self.taken += [tail(f"log-{number}.txt", path) for number, path in enumerate(known, 1)]

    def _page(self, url: str) -> Awaitable[str]:
        return page(url, seconds_max=self._asked.seconds_max)


def _versions() -> dict[str, Any]:
    import platform

    packages: dict[str, str | None] = {}
    for name in PACKAGES:
        try:
            packages[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            packages[name] = None
    return {
        "barnabas": __version__,
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "packages": packages,
    }


def _entry(entry: ConfigEntry) -> dict[str, Any]:
    found: dict[str, Any] = plain(entry)
    found.pop("documentation")
    return found | ({"value": None} if entry.is_sensitive else {})


async def _topic_settings(admin: Admin) -> dict[str, Any]:
    """Those that are not left at their default."""
    topics = await admin.list_topics(include_internal=True)
    found = await admin.describe_configs([Resource(ResourceKind.TOPIC, topic.name) for topic in topics])
    return {
        resource.name: entries
        if isinstance(entries, ApiError)
        else [_entry(each) for each in entries.values() if not each.is_default]
        for resource, entries in found.items()
    }


async def _directories(admin: Admin) -> dict[int, Any]:
    cluster = await admin.describe_cluster()
    alive = [broker.id for broker in cluster.brokers if broker.id not in cluster.fenced]
    return {number: await admin.describe_log_dirs(number) for number in alive[:BROKERS_MAX]}


async def _groups(admin: Admin) -> list[dict[str, Any]]:
    from barnabas.client.group.lag import lags

    found = []
    listed = await admin.list_groups()
    for group in listed[:GROUPS_MAX]:
        try:
            offsets = {place: entry.offset for place, entry in (await admin.group_offsets(group.group_id)).items()}
            described = plain(await admin.describe_group(group.group_id))
            found.append(described | {"lag": plain(await lags(admin.cluster, offsets))})
        except ApiError as error:
            found.append({"group_id": group.group_id, **plain(error)})
    if len(listed) > GROUPS_MAX:
        found.append({"left_out": len(listed) - GROUPS_MAX})
    return found


async def _transactions(admin: Admin) -> dict[str, Any]:
    listed = await admin.list_transactions()
    return dict(await admin.describe_transactions([each.transactional_id for each in listed])) if listed else {}


async def _doctor(admin: Admin) -> list[Any]:
    from barnabas.ops.doctor.cluster import cluster_findings
    from barnabas.ops.doctor.facts import look
    from barnabas.ops.doctor.groups import group_findings

    facts = await look(admin, seconds=DOCTOR_SECONDS, now_ms=now_ms(), groups=[])
    return [*cluster_findings(facts), *group_findings(facts)]


def write_archive(path: Path, taken: Sequence[Taken], secrets: Iterable[str]) -> int:
    """Its size in bytes. Only its owner can read it, and it is there as a whole or not at all."""
    clean = Redaction(secrets)
    beside = path.with_name(f".{path.name}.part")
    try:
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("README.txt", READ_ME)
            archive.writestr("manifest.json", clean(json.dumps(manifest(taken), indent=1)))
            for each in taken:
                if each.text:
                    archive.writestr(each.name, clean(each.text))
        beside.replace(path)
        return path.stat().st_size
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise Failure(f"{path}: {error.strerror}") from error


def manifest(taken: Sequence[Taken]) -> list[dict[str, Any]]:
    return [
        {
            "step": each.name,
            "is_there": bool(each.text),
            "source": each.source,
            "error": each.error or None,
            "seconds": each.seconds,
            "characters": len(each.text),
            "cut": each.is_cut,
        }
        for each in taken
    ]
