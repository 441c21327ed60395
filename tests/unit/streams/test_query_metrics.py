"""Names and labels of the metrics of applications, and counters of tasks."""

from __future__ import annotations

from barnabas.observe.metrics import Metrics
from barnabas.streams.catalog.task_metrics import NodeTraffic, TaskMetrics
from barnabas.streams.queries.metrics import DriverState, families

TASK = TaskMetrics(
    task="0_1",
    time_ms=5,
    stream_time_ms=4,
    consumed=[NodeTraffic("SOURCE", "in", 3, 30), NodeTraffic("SOURCE", "more", 2, 20)],
    produced=[NodeTraffic("SINK", "out", 1, 7)],
    dropped={"AGGREGATE": 2},
    keys={"counts": 9},
    state_bytes=1000,
)


def test_the_page_has_the_names_and_labels_of_the_jmx_exporter() -> None:
    page = Metrics()
    page.add(lambda: families({"app": [TASK]}, {"app": DriverState(True, False, 12, 250)}))
    lines = [line for line in "".join(page.page()).splitlines() if not line.startswith("#")]
    task = 'client_id="app",thread_id="app-StreamThread-1",task_id="0_1"'
    source, sink = 'processor_node_id="SOURCE",topic_name="in"', 'processor_node_id="SINK",topic_name="out"'
    thread = 'client_id="app",thread_id="app-StreamThread-1"'
    for line in (
        'kafka_streams_stream_metrics_alive_stream_threads{client_id="app"} 1',
        'kafka_streams_stream_metrics_failed_stream_threads{client_id="app"} 0',
        f"kafka_streams_stream_thread_metrics_commit_total{{{thread}}} 12",
        f"kafka_streams_stream_thread_metrics_commit_latency_avg{{{thread}}} 250",
        f"kafka_streams_stream_task_metrics_process_total{{{task}}} 5",
        f'kafka_streams_stream_task_metrics_dropped_records_total{{{task},processor_node_id="AGGREGATE"}} 2',
        f"kafka_streams_stream_topic_metrics_bytes_consumed_total{{{task},{source}}} 30",
        f"kafka_streams_stream_topic_metrics_records_produced_total{{{task},{sink}}} 1",
        f'kafka_streams_stream_state_metrics_estimate_num_keys{{{task},in_memory_state_id="counts"}} 9',
        f"barnabas_streams_task_state_bytes{{{task}}} 1000",
        f"barnabas_streams_task_stream_time_ms{{{task}}} 4",
    ):
        assert line in lines
