"""The quotas of users, client ids and addresses, as the log has set them.

Whose quota applies to a request is decided where requests are counted. An entity is a sorted tuple of pairs, and a
name of None stands for the default.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from immutables import Map

from barnabas.metadata.records import ClientQuotaRecord

QuotaEntity: TypeAlias = tuple[tuple[str, str | None], ...]
_NO_VALUES: Map[str, float] = Map()


@dataclass(frozen=True, slots=True)
class ClientQuotasImage:
    by_entity: Map[QuotaEntity, Map[str, float]] = field(default_factory=Map)

    def with_quota(self, record: ClientQuotaRecord) -> ClientQuotasImage:
        entity = entity_of(record)
        values = self.by_entity.get(entity, _NO_VALUES)
        if not record.remove:
            return ClientQuotasImage(self.by_entity.set(entity, values.set(record.key, record.value)))
        if record.key not in values:
            return self
        values = values.delete(record.key)
        return ClientQuotasImage(self.by_entity.set(entity, values) if values else self.by_entity.delete(entity))

    def records(self) -> Iterator[ClientQuotaRecord]:
        for entity in sorted(
            self.by_entity, key=lambda entity: [(kind, name or "", name is None) for kind, name in entity]
        ):
            values = self.by_entity[entity]
            for key in sorted(values):
                yield ClientQuotaRecord(
                    entity=[ClientQuotaRecord.EntityData(entity_type=kind, entity_name=name) for kind, name in entity],
                    key=key,
                    value=values[key],
                )


def entity_of(record: ClientQuotaRecord) -> QuotaEntity:
    pairs = {data.entity_type: data.entity_name for data in record.entity}
    return tuple((kind, pairs[kind]) for kind in sorted(pairs))
