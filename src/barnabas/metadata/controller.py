"""All decisions of the controller in one place: what it can be asked, and where the answer is found.

Each is a pure function of the picture of the cluster, a request and facts, and gives the records to write and the
response. The driver in ``quorum_controller`` submits them; handlers import them from here.
"""

from __future__ import annotations

from barnabas.metadata.acls import create_acls, delete_acls, describe_acls
from barnabas.metadata.alter_partition import alter_partition
from barnabas.metadata.bootstrap import bootstrap_records
from barnabas.metadata.config_schema import ConfigSchema
from barnabas.metadata.configs import alter_configs, incremental_alter_configs
from barnabas.metadata.decision import Decision, Facts
from barnabas.metadata.elections import balance_leaders, elect_leaders, elect_unclean_leaders
from barnabas.metadata.features import update_features
from barnabas.metadata.heartbeats import broker_heartbeat, fence_expired
from barnabas.metadata.partitions import create_partitions
from barnabas.metadata.producer_ids import allocate_producer_ids
from barnabas.metadata.quotas import alter_client_quotas, describe_client_quotas
from barnabas.metadata.reassignments import alter_partition_reassignments, list_partition_reassignments
from barnabas.metadata.registrations import register_broker, register_controller, unregister_broker
from barnabas.metadata.replica_directories import assign_replicas_to_dirs
from barnabas.metadata.scram import alter_user_scram_credentials, describe_user_scram_credentials
from barnabas.metadata.topic_deletion import delete_topics
from barnabas.metadata.topics import create_topics

__all__ = [
    "ConfigSchema",
    "Decision",
    "Facts",
    "allocate_producer_ids",
    "alter_client_quotas",
    "alter_configs",
    "alter_partition",
    "alter_partition_reassignments",
    "alter_user_scram_credentials",
    "assign_replicas_to_dirs",
    "balance_leaders",
    "bootstrap_records",
    "broker_heartbeat",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_user_scram_credentials",
    "elect_leaders",
    "elect_unclean_leaders",
    "fence_expired",
    "incremental_alter_configs",
    "list_partition_reassignments",
    "register_broker",
    "register_controller",
    "unregister_broker",
    "update_features",
]
