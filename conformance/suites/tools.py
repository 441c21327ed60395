"""Apache Kafka's command-line tools as judges: each function here is a test, and its name is what must hold.

They run against whatever broker they are given, and look only at what the tools say. The functions in this module need
no groups and no transactions; those are in `group_tools.py`. Called through the table of suites.
"""

from __future__ import annotations

import inspect
import json
import time
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from bench.peers import Peer

from conformance.kafka_tool import KafkaTool, ToolFailed
from conformance.outcome import Leg, Outcome, Verdict, one_line
from conformance.suites import group_tools

_SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
}


def topic_command_creates_describes_lists_alters_and_deletes(tool: KafkaTool) -> None:
    topic = "tools-life"
    words = f"--topic {topic} --partitions 3 --replication-factor 1 --config retention.ms=60000"
    tool.ask("TopicCommand", f"--create {words}", f"Created topic {topic}")
    described = ("PartitionCount: 3", "ReplicationFactor: 1", "retention.ms=60000", r"Partition: 2\s+Leader: \d+")
    tool.ask("TopicCommand", f"--describe --topic {topic}", *described)
    tool.ask("TopicCommand", "--list", f"^{topic}$")
    tool.ask("TopicCommand", f"--alter --topic {topic} --partitions 5")
    tool.ask("TopicCommand", f"--describe --topic {topic}", "PartitionCount: 5")
    tool.ask("TopicCommand", f"--delete --topic {topic}")
    tool.ask("TopicCommand", "--list", absent=f"^{topic}$")


def topic_command_creates_with_a_replica_assignment(tool: KafkaTool) -> None:
    node = tool.ask("TopicCommand", f"--describe --topic {tool.topic('tools-node')}").split("Leader: ")[1].split()[0]
    words = f"--create --topic tools-assigned --replica-assignment {node},{node}"
    tool.ask("TopicCommand", words, "Created topic tools-assigned")
    tool.ask("TopicCommand", "--describe --topic tools-assigned", "PartitionCount: 2", f"Replicas: {node}")


def topic_command_lists_partitions_in_trouble(tool: KafkaTool) -> None:
    tool.topic("tools-healthy")
    tool.ask("TopicCommand", "--describe --under-replicated-partitions", absent="tools-healthy")
    tool.ask("TopicCommand", "--describe --unavailable-partitions", absent="tools-healthy")


def config_command_alters_a_topic(tool: KafkaTool) -> None:
    entity = f"--entity-type topics --entity-name {tool.topic('tools-config')}"
    main = "kafka.admin.ConfigCommand"
    tool.ask(
        main, f"--alter {entity} --add-config max.message.bytes=65536,cleanup.policy=[compact,delete]", "Completed"
    )
    tool.ask(main, f"--describe {entity}", "max.message.bytes=65536", "cleanup.policy=compact,delete")
    tool.ask(main, f"--alter {entity} --delete-config max.message.bytes", "Completed")
    tool.ask(main, f"--describe {entity}", "cleanup.policy=compact,delete", absent="max.message.bytes=65536")
    tool.ask(main, f"--describe --all {entity}", "DEFAULT_CONFIG:log.segment.bytes=", "max.message.bytes=1048588")


def config_command_alters_the_brokers(tool: KafkaTool) -> None:
    main = "kafka.admin.ConfigCommand"
    tool.ask(main, "--describe --entity-type brokers --entity-default", "Default configs for brokers")
    default = "--entity-type brokers --entity-default"
    tool.ask(main, f"--alter {default} --add-config log.retention.ms=12345678", "Completed")
    tool.ask(main, f"--describe {default}", "log.retention.ms=12345678")
    tool.ask(main, f"--alter {default} --delete-config log.retention.ms", "Completed")
    tool.ask(main, f"--describe {default}", absent="log.retention.ms=12345678")


def config_command_sets_quotas(tool: KafkaTool) -> None:
    main, entity = "kafka.admin.ConfigCommand", "--entity-type clients --entity-name tools-client"
    tool.ask(main, f"--alter {entity} --add-config producer_byte_rate=1048576", "Completed")
    tool.ask(main, f"--describe {entity}", "producer_byte_rate=1048576")


def acl_command_adds_lists_and_removes(tool: KafkaTool) -> None:
    words = "--allow-principal User:alice --operation Read --topic tools-acl"
    tool.ask("AclCommand", f"--add {words}", "User:alice")
    tool.ask("AclCommand", "--list --topic tools-acl", "principal=User:alice", "operation=READ")
    tool.ask("AclCommand", f"--remove --force {words}")
    tool.ask("AclCommand", "--list --topic tools-acl", absent="User:alice")


def get_offset_shell_tells_the_ends(tool: KafkaTool) -> None:
    topic = tool.filled("tools-offsets", records=7)
    tool.ask("GetOffsetShell", f"--topic {topic}", f"^{topic}:0:7$")
    tool.ask("GetOffsetShell", f"--topic {topic} --time earliest", f"^{topic}:0:0$")
    tool.ask("GetOffsetShell", f"--topic {topic} --time max-timestamp", rf"^{topic}:0:\d$")
    tool.ask("GetOffsetShell", f"--topic {topic} --time 1", f"^{topic}:0:0$")


def delete_records_command_moves_the_start(tool: KafkaTool) -> None:
    topic = tool.filled("tools-delete", records=10)
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}
    path = tool.file("delete.json", json.dumps(wanted))
    tool.ask("DeleteRecordsCommand", f"--offset-json-file {path}", "low_watermark: 4")
    tool.ask("GetOffsetShell", f"--topic {topic} --time earliest", f"^{topic}:0:4$")
    words = f"--topic {topic} --from-beginning --max-messages 6 --timeout-ms 10000"
    tool.ask("consumer.ConsoleConsumer", words, "^4$", "^9$", absent="^3$")


def log_dirs_command_tells_sizes(tool: KafkaTool) -> None:
    topic = tool.filled("tools-dirs", records=10)
    tool.ask("LogDirsCommand", f"--describe --topic-list {topic}", rf'"partition":"{topic}-0"', r'"size":[1-9]')


def cluster_tool_tells_id_and_endpoints(tool: KafkaTool) -> None:
    tool.run("ClusterTool", f"cluster-id --bootstrap-server {tool.bootstrap}", r"Cluster ID: \S{22}")
    host, port = tool.bootstrap.split(":")
    tool.run("ClusterTool", f"list-endpoints --bootstrap-server {tool.bootstrap}", rf"{host}\s+{port}")


def broker_api_versions_command_knows_every_api(tool: KafkaTool) -> None:
    apis = (r"Produce\(0\): ", r"Fetch\(1\): ", r"Metadata\(3\): ", r"ApiVersions\(18\): ", r"CreateTopics\(19\): ")
    tool.ask("BrokerApiVersionsCommand", "", r"\(id: \d+ rack: ", *apis, absent="UNKNOWN")


def metadata_quorum_command_describes_the_quorum(tool: KafkaTool) -> None:
    status = (r"ClusterId:\s+\S{22}", r"LeaderId:\s+\d+", r"LeaderEpoch:\s+\d+", r"HighWatermark:\s+[1-9]")
    tool.ask("MetadataQuorumCommand", "describe --status", *status)
    tool.ask("MetadataQuorumCommand", "describe --replication", r"^\d+\s+\S+\s+\d+\s+0\s.*Leader")


def feature_command_describes_features(tool: KafkaTool) -> None:
    tool.ask(
        "FeatureCommand", "describe", r"Feature: metadata.version\s+SupportedMinVersion: ", "FinalizedVersionLevel"
    )


def leader_election_command_elects(tool: KafkaTool) -> None:
    topic = tool.topic("tools-elect")
    words = f"--election-type preferred --topic {topic} --partition 0"
    tool.ask("LeaderElectionCommand", words, "Valid replica already elected|Successfully completed")


def reassign_partitions_command_lists_and_verifies(tool: KafkaTool) -> None:
    tool.ask("reassign.ReassignPartitionsCommand", "--list", "No partition reassignments found")
    topic = tool.topic("tools-reassign")
    node = tool.ask("TopicCommand", f"--describe --topic {topic}").split("Leader: ")[1].split()[0]
    moves = [{"topic": topic, "partition": 0, "replicas": [int(node)]}]
    path = tool.file("reassign.json", json.dumps({"version": 1, "partitions": moves}))
    started = "Successfully started partition reassignment"
    tool.ask("reassign.ReassignPartitionsCommand", f"--reassignment-json-file {path} --execute", started)
    words = f"--reassignment-json-file {path} --verify"
    tool.ask("reassign.ReassignPartitionsCommand", words, f"Reassignment of partition {topic}-0 is completed")


def console_producer_and_consumer_carry_keys_and_headers(tool: KafkaTool) -> None:
    topic = tool.topic("tools-console")
    properties = "--reader-property parse.key=true --reader-property parse.headers=true"
    tool.ask("ConsoleProducer", f"--topic {topic} {properties} --compression-codec lz4", stdin="h:1\tkey\tvalue\n")
    printing = "--formatter-property print.key=true --formatter-property print.headers=true"
    words = f"--topic {topic} --partition 0 --offset earliest --max-messages 1 --timeout-ms 10000 {printing}"
    tool.ask("consumer.ConsoleConsumer", words, "^h:1\tkey\tvalue$", "Processed a total of 1 messages")


def producer_performance_sends_everything(tool: KafkaTool) -> None:
    topic = tool.topic("tools-perf", partitions=3)
    words = f"--topic {topic} --num-records 5000 --record-size 200 --throughput -1 --bootstrap-server {tool.bootstrap}"
    tool.run("ProducerPerformance", words, "^5000 records sent")
    tool.ask("GetOffsetShell", f"--topic {topic}", f"^{topic}:2:\\d+$")


def verifiable_producer_hears_of_every_record(tool: KafkaTool) -> None:
    topic = tool.topic("tools-verifiable")
    words = f"--topic {topic} --max-messages 200 --throughput -1 --acks -1"
    tool.ask("VerifiableProducer", words, r'"name":"tool_data".*"sent":200.*"acked":200|"acked":200.*"sent":200')
    tool.ask("GetOffsetShell", f"--topic {topic}", f"^{topic}:0:200$")


def dump_log_segments_reads_the_files(tool: KafkaTool) -> None:
    topic = tool.filled("tools-dump", records=10)
    log = next((tool.data_dir / f"{topic}-0").glob("*.log"))
    expected = (r"^baseOffset: 0 lastOffset: ", r"isvalid: true", r"payload: 9$")
    tool.run("DumpLogSegments", f"--files {log} --deep-iteration --print-data-log", *expected, absent="invalid")


def dump_log_segments_checks_the_index_of_the_active_segment(tool: KafkaTool) -> None:
    topic = tool.filled("tools-index", records=10)
    index = next((tool.data_dir / f"{topic}-0").glob("*.log")).with_suffix(".index")
    tool.run("DumpLogSegments", f"--files {index} --index-sanity-check", absent="Mismatch|not found")


def dump_log_segments_reads_the_metadata_log(tool: KafkaTool) -> None:
    tool.topic("tools-metadata")
    log = next((tool.data_dir / "__cluster_metadata-0").glob("*.log"))
    words = f"--files {log} --cluster-metadata-decoder"
    tool.run("DumpLogSegments", words, '"type":"TOPIC_RECORD".*"name":"tools-metadata"', '"type":"PARTITION_RECORD"')


def client_compatibility_test_finds_every_feature(tool: KafkaTool) -> None:
    features = ("offsets-for-times", "cluster-id", "describe-acls", "describe-configs", "idempotent-producer")
    words = " ".join(f"--{feature}-supported true" for feature in (*features, "create-topics"))
    topic = tool.topic("tools-compatibility")
    more = f"--topic {topic} --num-cluster-nodes 1 --expect-record-too-large-exception false"
    tool.ask("ClientCompatibilityTest", f"{more} {words}", "SUCCESS")


def legs() -> list[Leg]:
    return [Leg(_SETTINGS, list(_tests()), _run)]


def _tests() -> dict[str, Callable[[KafkaTool], None]]:
    """Every public function of the two modules that takes a tool."""
    return {**_functions_of(inspect.getmodule(_tests)), **_functions_of(group_tools)}


def _functions_of(module: ModuleType | None) -> dict[str, Callable[[KafkaTool], None]]:
    return {
        name: function
        for name, function in vars(module).items()
        if inspect.isfunction(function) and list(inspect.signature(function).parameters) == ["tool"]
    }


def _run(peer: Peer, tests: Sequence[str]) -> Iterator[Outcome]:
    functions = _tests()
    tool = KafkaTool(peer.bootstrap, peer.directory, peer.data_dir)
    for test in tests:
        started = time.monotonic()
        try:
            functions[test](tool)
        except (ToolFailed, StopIteration, IndexError, OSError) as failure:
            yield Outcome(test, Verdict.FAIL, one_line(str(failure) or repr(failure)), time.monotonic() - started)
        else:
            yield Outcome(test, Verdict.PASS, "", time.monotonic() - started)
