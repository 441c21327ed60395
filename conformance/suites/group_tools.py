"""The tools that need consumer groups or transactions; the suite in `tools.py` runs them with its own.

Each function here is a test, and its name is what must hold.
"""

from __future__ import annotations

from conformance.kafka_tool import KafkaTool

_GROUPS = "consumer.group.ConsumerGroupCommand"


def _consume(tool: KafkaTool, topic: str, group: str, count: int) -> None:
    words = f"--topic {topic} --group {group} --from-beginning --max-messages {count} --timeout-ms 20000"
    tool.ask("consumer.ConsoleConsumer", words, f"Processed a total of {count} messages")


def console_consumer_resumes_where_its_group_stood(tool: KafkaTool) -> None:
    topic = tool.filled("group-console", records=10)
    _consume(tool, topic, "group-console", 4)
    words = f"--topic {topic} --group group-console --max-messages 6 --timeout-ms 20000"
    tool.ask("consumer.ConsoleConsumer", words, "^4$", "^9$", absent="^3$")


def console_consumer_uses_the_new_protocol(tool: KafkaTool) -> None:
    topic = tool.filled("group-next", records=10)
    words = f"--topic {topic} --group group-next --from-beginning --max-messages 10 --timeout-ms 20000"
    tool.ask("consumer.ConsoleConsumer", f"{words} --command-property group.protocol=consumer", "^0$", "^9$")
    tool.ask(_GROUPS, "--list --type consumer", r"^group-next\s+Consumer")


def consumer_group_command_lists_and_describes(tool: KafkaTool) -> None:
    topic = tool.filled("group-described", partitions=1, records=10)
    _consume(tool, topic, "group-described", 6)
    tool.ask(_GROUPS, "--list --state", r"^group-described\s+Empty")
    tool.ask(_GROUPS, "--describe --group group-described", rf"^group-described\s+{topic}\s+0\s+6\s+10\s+4\s")
    tool.ask(_GROUPS, "--describe --group group-described --state", r"group-described\s.*Empty\s+0")
    tool.ask(_GROUPS, "--describe --group group-described --members", "has no active members")


def consumer_group_command_resets_and_deletes_offsets(tool: KafkaTool) -> None:
    topic = tool.filled("group-reset", records=10)
    _consume(tool, topic, "group-reset", 10)
    words = f"--group group-reset --topic {topic}"
    tool.ask(_GROUPS, f"--reset-offsets {words} --to-offset 3 --execute", rf"{topic}\s+0\s+3")
    tool.ask(_GROUPS, "--describe --group group-reset", rf"{topic}\s+0\s+3\s+10\s+7")
    tool.ask(_GROUPS, f"--reset-offsets {words} --to-earliest --execute", rf"{topic}\s+0\s+0")
    tool.ask(_GROUPS, f"--delete-offsets {words}", "Successful")
    tool.ask(_GROUPS, "--delete --group group-reset", "was successful")
    tool.ask(_GROUPS, "--list", absent="^group-reset$")


def groups_command_lists_every_type(tool: KafkaTool) -> None:
    topic = tool.filled("group-types", records=3)
    _consume(tool, topic, "group-types", 3)
    tool.ask("GroupsCommand", "--list", r"group-types\s+Classic\s+consumer")


def consumer_performance_reads_everything(tool: KafkaTool) -> None:
    topic = tool.topic("group-performance", partitions=3)
    words = f"--topic {topic} --num-records 5000 --record-size 200 --throughput -1 --bootstrap-server {tool.bootstrap}"
    tool.run("ProducerPerformance", words, "^5000 records sent")
    tool.ask("ConsumerPerformance", f"--topic {topic} --num-records 5000 --timeout 20000", r", 5\d\d\d, ")


def end_to_end_latency_measures(tool: KafkaTool) -> None:
    topic = tool.topic("group-latency")
    words = f"--topic {topic} --num-records 200 --producer-acks all --record-size 100"
    tool.ask("EndToEndLatency", words, "^Percentiles: 50th = ")


def verifiable_consumer_reads_and_commits(tool: KafkaTool) -> None:
    topic = tool.filled("group-verifiable", records=50)
    events = ('"name":"partitions_assigned"', '"name":"records_consumed"', '"name":"offsets_committed".*"success":true')
    words = f"--topic {topic} --group-id group-verifiable --max-messages 50 --reset-policy earliest"
    tool.ask("VerifiableConsumer", words, *events)


def verifiable_consumer_speaks_the_new_protocol(tool: KafkaTool) -> None:
    topic = tool.filled("group-verifiable-next", records=50)
    words = f"--topic {topic} --group-id group-verifiable-next --max-messages 50 --reset-policy earliest"
    tool.ask("VerifiableConsumer", f"{words} --group-protocol consumer", '"name":"offsets_committed".*"success":true')


def producer_performance_commits_transactions(tool: KafkaTool) -> None:
    topic = tool.topic("txn-performance")
    words = f"--topic {topic} --num-records 2000 --record-size 100 --throughput -1 --bootstrap-server {tool.bootstrap}"
    tool.run(
        "ProducerPerformance", f"{words} --transactional-id txn-perf --transaction-duration-ms 100", "^2000 records"
    )
    words = f"--topic {topic} --from-beginning --max-messages 2000 --timeout-ms 20000 --isolation-level read_committed"
    tool.ask("consumer.ConsoleConsumer", words, "Processed a total of 2000 messages")


def transactions_command_lists_and_describes(tool: KafkaTool) -> None:
    topic = tool.topic("txn-described")
    words = f"--topic {topic} --num-records 100 --record-size 100 --throughput -1 --bootstrap-server {tool.bootstrap}"
    tool.run(
        "ProducerPerformance", f"{words} --transactional-id txn-seen --transaction-duration-ms 100", "^100 records"
    )
    tool.ask("TransactionsCommand", "list", r"^txn-seen\s+\d+\s+\d+\s+CompleteCommit")
    tool.ask("TransactionsCommand", "describe --transactional-id txn-seen", r"txn-seen\s+\d+\s+\d+\s+CompleteCommit")
    tool.ask(
        "TransactionsCommand", f"describe-producers --topic {topic} --partition 0", r"^\d+\s+\d+\s+-?\d+\s+-?\d+\s"
    )
    tool.ask("TransactionsCommand", f"find-hanging --topic {topic}", absent="txn-seen")


def transactional_message_copier_copies_exactly_once(tool: KafkaTool) -> None:
    source = tool.filled("txn-source", records=100)
    target = tool.topic("txn-target")
    words = f"--broker-list {tool.bootstrap} --input-topic {source} --input-partition 0 --output-topic {target}"
    more = "--transactional-id txn-copier --consumer-group txn-copier --transaction-size 10 --max-messages 100"
    copied = '"consumed":100|"remaining":0'
    tool.run("TransactionalMessageCopier", f"{words} {more} --enable-random-aborts", copied)
    words = f"--topic {target} --from-beginning --timeout-ms 8000 --isolation-level read_committed"
    tool.ask("consumer.ConsoleConsumer", words, "^0$", "^99$", "Processed a total of 100 messages")


def dump_log_segments_decodes_offsets(tool: KafkaTool) -> None:
    topic = tool.filled("group-dumped", records=5)
    _consume(tool, topic, "group-dumped", 5)
    logs = ",".join(str(log) for log in sorted(tool.data_dir.glob("__consumer_offsets-*/*.log")) if log.stat().st_size)
    decoded = '"group":"group-dumped","topic":"group-dumped","partition":0'
    tool.run("DumpLogSegments", f"--files {logs} --offsets-decoder", decoded)


def dump_log_segments_decodes_transactions(tool: KafkaTool) -> None:
    topic = tool.topic("txn-dumped")
    words = f"--topic {topic} --num-records 10 --record-size 10 --throughput -1 --bootstrap-server {tool.bootstrap}"
    tool.run(
        "ProducerPerformance", f"{words} --transactional-id txn-dumped --transaction-duration-ms 100", "^10 records"
    )
    logs = ",".join(str(log) for log in sorted(tool.data_dir.glob("__transaction_state-*/*.log")) if log.stat().st_size)
    tool.run("DumpLogSegments", f"--files {logs} --transaction-log-decoder", '"transactionalId":"txn-dumped"')
