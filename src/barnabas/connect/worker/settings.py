"""Settings of a worker: Kafka Connect's names where Kafka has them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from barnabas.connect.catalog import ALLOWED
from barnabas.connect.config import Config, Names, doc


class WorkerSettings(Config):
    """What ``barnabas connect worker`` can be told; keys that begin with ``client.`` are settings of the client."""

    any_prefix = ("client.",)

    bootstrap_servers: Annotated[str, doc("Brokers to connect to")] = "127.0.0.1:9092"
    group_id: Annotated[str, doc("Name of the Connect cluster"), Meta(min_length=1)] = "connect-cluster"
    config_storage_topic: Annotated[str, doc("Topic for configurations")] = "connect-configs"
    offset_storage_topic: Annotated[str, doc("Topic for offsets of sources")] = "connect-offsets"
    status_storage_topic: Annotated[str, doc("Topic for statuses")] = "connect-status"
    checkpoint_storage_topic: Annotated[str, doc("Topic for Spark's checkpoints")] = "connect-checkpoints"
    offset_storage_partitions: Annotated[int, doc("Partitions of the offset topic"), Meta(ge=1)] = 25
    status_storage_partitions: Annotated[int, doc("Partitions of the status topic"), Meta(ge=1)] = 5
    storage_replication_factor: Annotated[int, doc("Replicas of these topics; -1: the broker's default")] = -1
    host: Annotated[str, doc("Address to listen on")] = "127.0.0.1"
    port: Annotated[int, doc("Port to listen on; 0: any free one"), Meta(ge=0, le=65535)] = 8083
    rest_advertised_host_name: Annotated[str, doc("Name by which other workers reach this one; empty: host")] = ""
    rest_allowed_hosts: Annotated[Names, doc("Host headers to accept beside the worker's own")] = ()
    rest_allowed_origins: Annotated[Names, doc("Origins of web pages that may call the API")] = ()
    rest_users_file: Annotated[str, doc("File with a line user=password per user of the API")] = ""
    rest_cluster_users: Annotated[bool, doc("Users of the API are those of the cluster, by SASL")] = False
    rest_tls_keystore: Annotated[str, doc("PEM file with the key and certificates of the API, which is then HTTPS")] = (
        ""
    )
    rest_tls_truststore: Annotated[str, doc("PEM file with CAs: clients must show a certificate of one of them")] = ""
    session_timeout_ms: Annotated[int, doc("Time after which a dead leader is replaced"), Meta(ge=1000)] = 10_000
    topic_tracking_enable: Annotated[bool, doc("Keep track of the topics that connectors use")] = True
    topic_tracking_allow_reset: Annotated[bool, doc("Whether that may be reset")] = True
    plugins_directory: Annotated[str, doc("Directory with plugins as Python files")] = "plugins"
    plugins_allow: Annotated[Names, doc("Where plugins may come from; names of modules are added here")] = ALLOWED
    config_providers_allowed_paths: Annotated[Names, doc("Paths that ${file:…} and ${dir:…} may read; empty: all")] = ()
    data_dir: Annotated[str, doc("Directory for checkpoints and logs of this worker; empty: a temporary one")] = ""
    spark_master: Annotated[str, doc("Where Spark runs")] = "local[2]"
