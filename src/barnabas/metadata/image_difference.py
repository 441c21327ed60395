"""What differs between two pictures of the cluster that no sequence of records connects: after a snapshot was loaded.

This looks at everything in both, unlike the changes that an ImageBuilder collects while it applies a batch; a snapshot
is read in full anyway. The driver of the metadata log calls it.
"""

from __future__ import annotations

from typing import Any

from immutables import Map

from barnabas.metadata.image import ClusterImage
from barnabas.metadata.image_builder import MetadataChanges
from barnabas.metadata.partition_image import TopicIdPartition


def difference(old: ClusterImage, new: ClusterImage) -> MetadataChanges:
    old_topics, new_topics = old.topics.by_id, new.topics.by_id
    changed_partitions = []
    for topic_id in sorted(new_topics):
        before = old_topics[topic_id].partitions if topic_id in old_topics else ()
        changed_partitions += [
            TopicIdPartition(topic_id, index)
            for index, partition in enumerate(new_topics[topic_id].partitions)
            if index >= len(before) or before[index] != partition
        ]
    return MetadataChanges(
        created_topics=tuple(topic_id for topic_id in sorted(new_topics) if topic_id not in old_topics),
        deleted_topics=tuple(old_topics[topic_id] for topic_id in sorted(old_topics) if topic_id not in new_topics),
        changed_partitions=tuple(changed_partitions),
        changed_configs=_changed(old.configs.by_resource, new.configs.by_resource),
        changed_brokers=_changed(old.brokers, new.brokers),
        has_new_features=old.features != new.features,
        has_new_quotas=old.client_quotas != new.client_quotas,
        has_new_security=old.security != new.security,
    )


def _changed(old: Map[Any, Any], new: Map[Any, Any]) -> tuple[Any, ...]:
    keys = sorted({*old, *new})
    return tuple(key for key in keys if old.get(key) != new.get(key))
