"""``barnabas generate``: what others need to watch a cluster: a dashboard for Grafana, rules and a job for Prometheus.

The same dashboard is served at ``/grafana.json``; a test holds it, and the rules, against the numbers of a broker.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib.resources import files
from typing import Final

KINDS: Final = ("grafana", "alerts", "prometheus")
ALERTS_FILE: Final = "alerts.yml"
DASHBOARD_FILE: Final = "grafana.json"
JOB: Final = """\
scrape_configs:
  - job_name: barnabas
    scrape_interval: 15s
    static_configs:
      - targets: [{targets}]
rule_files:
  - alerts.yml  # barnabas generate alerts > alerts.yml
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("kind", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    parser.add_argument(
        "--target",
        dest="targets",
        action="append",
        default=[],
        metavar="HOST:PORT",
        help="with prometheus: the barnabas.http.port of a broker; repeatable (default localhost:9644)",
    )


def run(arguments: Namespace) -> None:
    if arguments.kind == "prometheus":
        targets = ", ".join(f'"{target}"' for target in arguments.targets or ["localhost:9644"])
        print(JOB.format(targets=targets), end="")
        return
    name = ALERTS_FILE if arguments.kind == "alerts" else DASHBOARD_FILE
    print(files("barnabas.observe").joinpath(name).read_text(), end="")
