"""``make demo``: a cluster, a shop that writes orders and payments, a pipeline on Spark, a broker that is killed.

Everything is done with the commands that users have, so what it prints is what they will see. At the end the result is
compared with what the shop knows, by two readers, and drawn. Leaves the picture in the current directory.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from barnabas import ProducerSettings, blocking
from barnabas.testing import Cluster
from tools.demo_orders import OPENING, Shop
from tools.demo_picture import draw, sparkline

BARNABAS = str(Path(sys.executable).parent / "barnabas")
PIPELINE = Path(__file__).parents[1] / "examples" / "pipelines" / "revenue.py"
PICTURE = Path("barnabas-demo.png")
SHOP_SECONDS = 120  # of the shop's time
TICK_SECONDS = 0.15  # of ours
ORDERS_PER_SECOND = 150
PATIENCE_SECONDS = 300.0
VICTIM = 2
# It is over before a compiler that thinks long would have paid.
JAVA_OPTIONS = "spark.driver.extraJavaOptions=-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

started = time.monotonic()


def say(text: str) -> None:
    line = f"{text}  ({time.monotonic() - started:.0f} s)"
    print(f"\n\033[1m{line}\033[0m" if sys.stdout.isatty() else f"\n{line}", flush=True)


def run(arguments: str, servers: str, *, is_shown: bool = True) -> str:
    if is_shown:
        print(f"$ barnabas {arguments}", flush=True)
    command = [BARNABAS, *arguments.split(), "--bootstrap-server", servers]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    if is_shown:
        print(done.stdout, end="", flush=True)
    return done.stdout


class Pipelines:
    """``barnabas run`` in a process of its own, with its lines shown as they come."""

    def __init__(self, servers: str, directory: Path) -> None:
        command = [BARNABAS, "run", str(PIPELINE), "--master", "local[2]", "-b", servers]
        command += ["--checkpoints", str(directory / "checkpoints"), "--set", JAVA_OPTIONS]
        print(f"$ barnabas run {PIPELINE.relative_to(PIPELINE.parents[2])} --master local[2]", flush=True)
        environment = os.environ | {"REVENUE_DIRECTORY": str(directory / "parquet")}
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.has_begun = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)
        self._thread.start()

    def _show(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("revenue "):
                self.has_begun.set()
            print(f"   {line}", end="", flush=True)
        self.has_begun.set()

    def wait_until_begun(self) -> None:
        """Until it has said what its first batch was."""
        if not self.has_begun.is_set():
            print("   (the shop waits for the pipeline's first batch)", flush=True)
        self.has_begun.wait(PATIENCE_SECONDS)
        self.check()

    def check(self) -> None:
        code = self._process.poll()
        if code is not None:
            raise SystemExit(f"the pipelines have ended, with code {code}")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(PATIENCE_SECONDS)
        self._thread.join()
        if code:
            raise SystemExit(f"the pipelines ended with code {code}")

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()


def sell(shop: Shop, cluster: Cluster, pipelines: Pipelines) -> datetime:
    """The whole day of the shop; in the middle of it a broker is killed, and later comes back."""
    killed_at = OPENING
    with blocking.Producer(ProducerSettings.of({"bootstrap.servers": cluster.bootstrap_servers})) as producer:
        for second, (orders, payments) in enumerate(shop.ticks()):
            begun = time.monotonic()
            if second == SHOP_SECONDS // 2:
                pipelines.wait_until_begun()
                killed_at = OPENING + timedelta(seconds=second)
                say(f"5. kill -9 of broker {VICTIM}, while records are being written and read")
                cluster.kill(VICTIM)
            elif second == SHOP_SECONDS * 5 // 6:
                say(f"6. broker {VICTIM} comes back")
                cluster.start(VICTIM)
            for topic, records in (("orders", orders), ("payments", payments)):
                if records:
                    producer.send_many(topic, [(key.encode(), value.encode()) for key, value in records])
            pipelines.check()
            time.sleep(max(0.0, TICK_SECONDS - (time.monotonic() - begun)))
    return killed_at


def from_topic(servers: str) -> dict[tuple[datetime, str], tuple[int, float]]:
    """By a reader that has nothing to do with the pipeline."""
    import json

    from confluent_kafka import Consumer, TopicPartition

    found: dict[tuple[datetime, str], tuple[int, float]] = {}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "demo", "isolation.level": "read_committed"})
    partitions = consumer.list_topics("revenue").topics["revenue"].partitions
    ends = {index: consumer.get_watermark_offsets(TopicPartition("revenue", index))[1] for index in partitions}
    consumer.assign([TopicPartition("revenue", index, 0) for index in partitions])
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < 3 and any(
        position.offset < ends[position.partition] for position in consumer.position(consumer.assignment())
    ):
        message = consumer.poll(0.5)
        if message is None or message.error() is not None:
            continue
        quiet_since = time.monotonic()
        row = json.loads(message.value())
        place = (datetime.fromisoformat(row["start"]).astimezone(UTC), row["country"])
        if place in found:
            raise SystemExit(f"{place} is there twice")
        found[place] = (row["orders"], row["amount"])
    consumer.close()
    return found


def from_parquet(directory: Path) -> dict[tuple[datetime, str], tuple[int, float]]:
    """What Spark's own log of the directory calls written: files of a batch that failed are not."""
    import json

    import pyarrow as pa
    import pyarrow.parquet as parquet

    files: dict[str, None] = {}
    for log in sorted((directory / "_spark_metadata").glob("[0-9]*")):
        for line in log.read_text().splitlines()[1:]:
            entry: dict[str, Any] = json.loads(line)
            files[entry["path"].removeprefix("file://")] = None
    rows = []
    for path in files:
        table = parquet.read_table(path)
        starts = table.column("start").cast(pa.timestamp("us", tz="UTC"), safe=False)  # Parquet's have no zone
        rows += table.set_column(table.column_names.index("start"), "start", starts).to_pylist()
    found = {(row["start"].astimezone(UTC), row["country"]): (row["orders"], row["amount"]) for row in rows}
    if len(found) != len(rows):
        raise SystemExit("a window is in Parquet twice")
    return found


def wait_for(shop: Shop, servers: str, directory: Path, pipelines: Pipelines) -> None:
    """Until both targets have all windows, or nothing more can be expected."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        pipelines.check()
        if (directory / "parquet" / "_spark_metadata").exists() and len(from_parquet(directory / "parquet")) >= len(
            shop.expected
        ):
            return
        time.sleep(1)
    raise SystemExit("the result is not complete")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as temporary:
        directory = Path(temporary)
        say("1. Three brokers")
        with Cluster(directory / "brokers", settings={"barnabas.log.level": "ERROR"}) as cluster:
            servers = cluster.bootstrap_servers
            print(f"ready at {servers}")
            say("2. Topics, three copies of everything")
            for topic in ("orders", "payments", "revenue", "orders.dead-letters"):
                run(f"topic create {topic} -p 2 -r 3 -c min.insync.replicas=2", servers)
            say("3. A pipeline: orders and payments joined, summed by country and window; the sums kept as Parquet")
            pipelines = Pipelines(servers, directory)
            try:
                day(cluster, servers, directory, pipelines)
            finally:
                pipelines.kill()
    say("10. Next")
    print(
        "  .venv/bin/barnabas up --brokers 3                       a cluster of your own, data in ./barnabas-data\n"
        "  .venv/bin/barnabas run examples/pipelines/revenue.py    the pipeline of this demo, on it\n"
        "  docs/SPARK.md                                           options, guarantees, clusters of Spark\n"
        "  pytest: ask for the fixture `broker`                    a fresh broker for each test\n"
        "  README.md, docs/ARCHITECTURE.md                         what it is and how it works"
    )
    return 0


def day(cluster: Cluster, servers: str, directory: Path, pipelines: Pipelines) -> None:
    say("4. A shop writes orders and payments")
    shop = Shop(SHOP_SECONDS, ORDERS_PER_SECOND)
    killed_at = sell(shop, cluster, pipelines)
    print(f"{shop.order_count:,} orders, {shop.broken_count} broken records among them")
    say("7. The pipeline catches up")
    wait_for(shop, servers, directory, pipelines)
    run("pipeline list", servers)
    run("group describe revenue", servers)
    pipelines.stop()
    say("8. Is it right? Two readers that know nothing of Spark compare it with what the shop knows")
    expected = {place: (int(count), round(total, 2)) for place, (count, total) in shop.expected.items()}
    found = from_topic(servers)
    check("topic", found, expected)
    check("Parquet", from_parquet(directory / "parquet"), expected)
    dead = len(blocking.read("orders.dead-letters", bootstrap_servers=servers, isolation_level="read_committed"))
    print(f"   dead letters: {dead} of {shop.broken_count} broken records, each with where it was and why")
    if dead != shop.broken_count:
        raise SystemExit("dead letters are missing or doubled")
    show(found, killed_at)


def check(
    name: str,
    found: dict[tuple[datetime, str], tuple[int, float]],
    expected: dict[tuple[datetime, str], tuple[int, float]],
) -> None:
    wrong = [
        place
        for place in sorted(expected.keys() | found.keys())
        if place not in found
        or place not in expected
        or found[place][0] != expected[place][0]
        or abs(found[place][1] - expected[place][1]) > 0.02
    ]
    if wrong:
        place = wrong[0]
        raise SystemExit(
            f"{name}: {len(wrong)} windows differ, as {place}: {found.get(place)}, not {expected.get(place)}"
        )
    orders = sum(count for count, _ in found.values())
    print(f"   {name}: {len(found)} windows, {orders:,} paid orders, every one exactly once")


def show(found: dict[tuple[datetime, str], tuple[int, float]], killed_at: datetime) -> None:
    say("9. The result")
    revenue = {place: amount for place, (_, amount) in found.items()}
    starts = sorted({start for start, _ in revenue})
    for country in sorted({country for _, country in revenue}):
        values = [revenue.get((start, country), 0.0) for start in starts]
        print(f"   {country}  {sparkline(values)}  {sum(values):>14,.2f}")
    draw(revenue, PICTURE, killed_at=killed_at)
    print(f"   as a picture: {PICTURE.absolute()}")


if __name__ == "__main__":
    sys.exit(main())
