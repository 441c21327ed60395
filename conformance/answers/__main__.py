"""Runs the judge: `python -m conformance.answers [--api NAME] [--record FILE]`. Needs Java and Maven.

It starts Apache Kafka and Barnabas, brings both into the same state, sends every case to both as three kinds of client,
and prints what differs and is not declared as deliberate. The exit code is 1 if there is such a difference.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bench.peers import Peer
from bench.probe import free_port

from barnabas.model.ids import Uuid
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from conformance.answers.answers import comparable, differences
from conformance.answers.cases import COMPACTED, TOPIC, cases
from conformance.answers.declared import declared, reason_for
from conformance.answers.exchange import Exchange
from conformance.answers.state import prepare, settings_for
from conformance.brokers import LenientBarnabas, SmallKafka

CLIENTS = ("admin", "nobody", "unauthenticated")
EXAMPLES_MAX = 3


class Side:
    """One broker and a connection for each kind of client."""

    def __init__(self, peer: Peer, sasl_port: int) -> None:
        plain = ("127.0.0.1", peer.port)
        guarded = ("127.0.0.1", sasl_port)
        self.clients = {
            "admin": Exchange(plain),
            "nobody": Exchange(guarded, "nobody"),
            "unauthenticated": Exchange(guarded),
        }
        self.topic_ids: dict[str, Uuid] = {}

    def prepare(self) -> None:
        prepare(self.clients["admin"])
        names = [MetadataRequest.MetadataRequestTopic(name=name) for name in (TOPIC, COMPACTED)]
        answer: Any = self.clients["admin"].ask(MetadataRequest(topics=names), 12)
        self.topic_ids = {row.name: row.topic_id for row in answer.topics}

    def versions(self) -> dict[int, range]:
        answer: Any = self.clients["admin"].ask(ApiVersionsRequest(), 0)
        return {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}


def judge(kafka: Side, ours: Side, only: str) -> tuple[Counter[str], dict[tuple[str, ...], list[str]], list[Any]]:
    theirs, own = kafka.versions(), ours.versions()
    common = {
        key: range(max(theirs[key].start, own[key].start), min(theirs[key].stop, own[key].stop))
        for key in theirs.keys() & own.keys()
    }
    rules, counts = declared(), Counter[str]()
    found: dict[tuple[str, ...], list[str]] = {}
    recorded: list[Any] = []
    pairs = zip(cases(common, kafka.topic_ids), cases(common, ours.topic_ids), strict=True)
    for first, second in pairs:
        if only and first.api.name != only:
            continue
        for client in CLIENTS:
            answer = comparable(kafka.clients[client].ask(first.message, first.version), first.version)
            other = comparable(ours.clients[client].ask(second.message, second.version), second.version)
            counts["pairs"] += 1
            recorded.append([first.api.name, first.version, first.shape, client, answer])
            different = list(differences(answer, other))
            if not different:
                counts["equal"] += 1
                continue
            reasons = [reason_for(rules, first, client, path) for path, _, _ in different]
            counts["deliberate" if all(reasons) else "different"] += 1
            for (path, theirs_, own_), reason in zip(different, reasons, strict=True):
                if reason is None:
                    key = (first.api.name, path, client, repr(theirs_)[:80], repr(own_)[:80])
                    found.setdefault(key, []).append(f"v{first.version} {first.shape}")
    return counts, found, recorded


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m conformance.answers")
    parser.add_argument("--api", default="", help="only this API, for example LIST_OFFSETS")
    parser.add_argument("--record", default="", help="file for Kafka's answers, as JSON lines")
    options = parser.parse_args()
    sasl_ports, controller_port = (free_port(), free_port()), free_port()
    kafka_peer = SmallKafka({}, controller_port=controller_port)
    our_peer = LenientBarnabas({})
    kafka_peer.settings.update(settings_for(kafka_peer.port, sasl_ports[0], controller_port))
    our_peer.settings.update(settings_for(our_peer.port, sasl_ports[1], None))
    with kafka_peer, our_peer:
        kafka, ours = Side(kafka_peer, sasl_ports[0]), Side(our_peer, sasl_ports[1])
        for side in (kafka, ours):
            side.prepare()
        counts, found, recorded = judge(kafka, ours, options.api)
    if options.record:
        Path(options.record).write_text("".join(json.dumps(row) + "\n" for row in recorded))
    for (api, path, client, theirs, own), places in sorted(found.items()):
        shown = ", ".join(places[:EXAMPLES_MAX]) + (f" and {len(places) - EXAMPLES_MAX} more" if places[3:] else "")
        print(f"{api:30} {client:16} {path:44} kafka {theirs:30} barnabas {own:30} {shown}")
    total = counts["pairs"]
    print(f"{total} request pairs: {counts['equal']} equal, {counts['deliberate']} deliberate, ", end="")
    print(f"{counts['different']} different in {len(found)} ways")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
