"""The demo, step by step. It uses the commands that users have, so that its output is what they will see."""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import psycopg

from barnabas import ProducerSettings, blocking
from barnabas.testing import Cluster
from barnabas.world.real import free_ports
from tools.demo import checks
from tools.demo.picture import draw, sparkline
from tools.demo.services import DRIVER, JAVA_OPTIONS, WAIT_SECONDS_MAX, Service, headline, run
from tools.demo.shop import COUNTRIES, CUSTOMERS, TICK, Shop
from tools.postgres_server import PostgresServer

PICTURE: Final = Path("barnabas-demo.png")
TICKS: Final = 144  # twelve minutes of the shop's time
TICK_SECONDS: Final = 0.2
BROKER_KILLED: Final = TICKS // 4
APPLICATION_KILLED: Final = TICKS // 2
DRIVER_KILLED: Final = TICKS * 2 // 3
BROKER: Final = 2  # the broker that is killed
TOPICS: Final = ("shop.public.customers", "shop.public.orders", "views", "sales-by-country", "views-by-country")
DEAD_LETTERS: Final = "shop.dead-letters"


class Demo:
    """A cluster, a database, a Connect worker and a Streams application; ``stack`` stops them."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self.directory = directory
        self.lake = directory / "lake"
        self.lake.mkdir()
        self._stack = stack

    def start(self) -> None:
        headline("1. Three brokers and a PostgreSQL database")
        self.cluster = self._stack.enter_context(
            Cluster(self.directory / "brokers", settings={"barnabas.log.level": "ERROR"})
        )
        self.servers = self.cluster.bootstrap_servers
        self.postgres = PostgresServer()
        self._stack.callback(self.postgres.stop)
        print(f"Kafka at {self.servers}\nPostgreSQL at 127.0.0.1:{self.postgres.port}")

        headline("2. Admin API: topics with three replicas")
        for topic in (*TOPICS, DEAD_LETTERS):
            run(f"topic create {topic} -p 2 -r 3 -c min.insync.replicas=2", "-b", self.servers)

        headline("3. Connect API: capture two tables, copy results to SQL tables, keep all changes in a lake")
        self.shop = Shop(self._database("shop"))
        self.shop.create()
        self.reports = self._database("reports")
        environment = {"SHOP_PORT": str(self.postgres.port), "SHOP_LAKE": str(self.lake)}
        port = free_ports("127.0.0.1", 1)[0]
        self.url = f"http://127.0.0.1:{port}"
        settings = ["--port", str(port), "--data-dir", str(self.directory / "connect"), "-b", self.servers]
        self.worker = self._service("connect worker", settings, environment)
        self.worker.start()
        self.worker.wait_for("REST API is at")
        run("connect apply -f connectors.yaml", "--url", self.url)

        headline("4. Streams API: join and count on Spark")
        settings = ["--checkpoints", str(self.directory / "checkpoints"), "-b", self.servers]
        settings += ["--set", f"spark.driver.extraJavaOptions={JAVA_OPTIONS}"]
        self.application = self._service("run shop.py", settings, {})
        self.application.start()
        self._wait_for_customers()

    def _wait_for_customers(self) -> None:
        """Wait until the customers are captured: page views of unknown customers are not counted."""
        topic = TOPICS[0]
        deadline = time.monotonic() + WAIT_SECONDS_MAX
        while len(blocking.read(topic, bootstrap_servers=self.servers, isolation_level="read_committed")) < CUSTOMERS:
            self.worker.check()
            if time.monotonic() > deadline:
                raise SystemExit(f"{topic} does not have the {CUSTOMERS} customers of the shop")
            time.sleep(0.5)
        print(f"   {CUSTOMERS} customers are captured: the shop opens", flush=True)

    def _database(self, name: str) -> psycopg.Connection[Any]:
        session = self.postgres.connect(self.postgres.database(name))
        self._stack.callback(session.close)
        return session

    def _service(self, arguments: str, hidden: list[str], environment: dict[str, str]) -> Service:
        service = Service(arguments, hidden, environment)
        self._stack.callback(service.kill)
        return service

    def trade(self) -> None:
        """Let the shop do its business, with three failures on the way."""
        headline("5. Producer API: the shop sells, and its web site writes page views")
        steps: dict[int, Callable[[], None]] = {
            BROKER_KILLED: self.kill_broker,
            APPLICATION_KILLED: self.kill_application,
            DRIVER_KILLED: self.kill_driver,
            TICKS * 5 // 6: self.start_broker,
        }
        settings = ProducerSettings.of({"bootstrap.servers": self.servers})
        with blocking.Producer(settings) as producer:
            for tick, views in enumerate(self.shop.ticks(TICKS)):
                begun = time.monotonic()
                if tick in steps:
                    steps[tick]()
                producer.send_many("views", views)
                self.worker.check()
                time.sleep(max(0.0, TICK_SECONDS - (time.monotonic() - begun)))
        shop = self.shop
        print(
            f"{shop.order_count:,} orders, of which {shop.deleted} were cancelled; {shop.changed} changes of price; "
            f"{shop.rolled_back} transactions rolled back\n"
            f"{sum(shop.views.values()):,} page views, and {shop.broken} that cannot be decoded"
        )

    def kill_broker(self) -> None:
        self.application.wait_for("^shop ")
        headline(f"6. kill -9: broker {BROKER}")
        self.cluster.kill(BROKER)

    def kill_application(self) -> None:
        headline("7. kill -9: the Streams application, with its Spark driver; it is started again")
        self.application.kill()
        self.application.start()

    def kill_driver(self) -> None:
        headline("8. kill -9: the Spark driver of the connectors; the Connect worker starts another")
        print(f"killed process {self.worker.kill_child(DRIVER)}")

    def start_broker(self) -> None:
        headline(f"9. Broker {BROKER} starts again")
        self.cluster.start(BROKER)

    def compare(self) -> None:
        """Compare all results with the shop's books, without Spark."""
        headline("10. Everything catches up")
        checks.wait_until_complete(self.shop, self.reports, self.lake, self.application.check)
        run("connect list", "--url", self.url)
        run("group describe shop", "-b", self.servers)
        self.application.stop()

        headline("11. Consumer API: are the results equal to the shop's books?")
        sales = self.shop.sales()
        orders = sum(count for count, _ in sales.values())
        checks.compare("topic sales-by-country", checks.sales_in_topic(self.servers), sales)
        print(f"   topic sales-by-country    {orders:,} orders in {len(sales)} countries, read by librdkafka: equal")
        checks.compare("table sales_by_country", checks.sales_in_sql(self.reports), sales)
        print(f"   table sales_by_country    {orders:,} orders in {len(sales)} countries: equal")
        views = checks.views_in_sql(self.reports)
        checks.compare("table views_by_country", views, self.shop.views)
        print(f"   table views_by_country    {sum(views.values()):,} page views in {len(views)} windows: equal")
        latest, changes = checks.orders_in_lake(self.lake)
        checks.compare("Iceberg", latest, self.shop.orders())
        print(f"   Iceberg, read by DuckDB   {changes:,} changes, each once; their latest rows are the table: equal")
        letters = blocking.read(DEAD_LETTERS, bootstrap_servers=self.servers, isolation_level="read_committed")
        if len(letters) != self.shop.broken:
            raise SystemExit(f"{len(letters)} dead letters, not {self.shop.broken}")
        print(f"   topic {DEAD_LETTERS}   {len(letters)} page views that cannot be decoded, each with the reason")
        self.show(views)

    def show(self, views: dict[tuple[str, int], int]) -> None:
        headline("12. Page views by country and minute")
        starts = sorted({start for _, start in views})
        for country in COUNTRIES:
            values = [float(views.get((country, start), 0)) for start in starts]
            print(f"   {country}  {sparkline(values)}  {sum(values):>8,.0f}")
        by_time = {
            (datetime.fromtimestamp(start / 1000, UTC), country): float(count)
            for (country, start), count in views.items()
        }
        opening = self.shop.opening
        failures = {
            opening + BROKER_KILLED * TICK: "broker killed",
            opening + APPLICATION_KILLED * TICK: "Streams application killed",
            opening + DRIVER_KILLED * TICK: "driver of the connectors killed",
        }
        draw(by_time, PICTURE, opening=opening, failures=failures)
        print(f"   as a picture: {PICTURE.absolute()}")

    def go_on(self) -> None:
        headline("13. Next")
        if sys.stdin.isatty() and sys.stdout.isatty():
            self.application.start()
            print(
                "Everything still runs. Look at it in another terminal; Enter stops it.\n"
                f"  .venv/bin/barnabas topic list -b {self.servers}\n"
                f"  .venv/bin/barnabas consume sales-by-country -b {self.servers}\n"
                f"  .venv/bin/barnabas connect list --url {self.url}\n"
                f"  psql -h 127.0.0.1 -p {self.postgres.port} -U postgres reports -c 'table sales_by_country'"
            )
            input()
        print(
            "  docs/DEMO.md                          what you have just seen, step by step\n"
            "  .venv/bin/barnabas up --brokers 3     a cluster of your own, data in ./barnabas-data\n"
            "  examples/shop                         the application and the connectors of this demo\n"
            "  README.md, docs/TOUR.md               the command line by example"
        )


def main() -> int:
    """Run the demo; return the exit code."""
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as directory, ExitStack() as stack:
        demo = Demo(Path(directory), stack)
        demo.start()
        demo.trade()
        demo.compare()
        demo.go_on()
    return 0


if __name__ == "__main__":
    sys.exit(main())
