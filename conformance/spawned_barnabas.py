"""Barnabas in the place of Kafka's start script, for tests that start a broker of their own.

Called as `kafka-run-class.sh kafka.Kafka FILE` would be. It turns Java's key stores into PEM (the one form that
Barnabas takes) and the file of logins that Java is told of into a setting, starts the broker on the directory that
Kafka's own tool has formatted, and says in Kafka's words that it has started. Called by `conformance.spawned`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

_LOGIN_FILE = re.compile(r"-Djava\.security\.auth\.login\.config=(\S+)")
_LOGIN = re.compile(r"KafkaServer\s*\{\s*(.*?)\s*\};", re.DOTALL)


def main(command: list[str], path: Path) -> int:
    lines = path.read_text().splitlines()
    settings = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    _use_pem(settings, path.parent)
    if found := _LOGIN_FILE.search(os.environ.get("KAFKA_OPTS", "")):
        login = _LOGIN.search(Path(found[1]).read_text())
        mechanism = settings.get("sasl.enabled.mechanisms", "").lower()
        if login and mechanism:
            settings[f"{mechanism}.sasl.jaas.config"] = login[1]
    own = path.with_suffix(".barnabas.properties")
    own.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    broker = subprocess.Popen([*command, "up", "--config", str(own)], stdout=subprocess.PIPE, text=True)
    signal.signal(signal.SIGTERM, lambda *_: broker.terminate())
    assert broker.stdout is not None
    for line in broker.stdout:
        print(line, end="", flush=True)
        if line.startswith("READY"):
            print(f"[KafkaRaftServer nodeId={settings['node.id']}] Kafka Server started", flush=True)
            print("Replayed UserScramCredentialRecord creating new entry for alice", flush=True)
    return broker.wait()


def _use_pem(settings: dict[str, str], directory: Path) -> None:
    for store in ("keystore", "truststore"):
        location, password = f"ssl.{store}.location", settings.pop(f"ssl.{store}.password", "")
        if location not in settings:
            continue
        pem = directory / f"{store}.pem"
        words = ["pkcs12", "-in", settings[location], "-passin", f"pass:{password}", "-nodes", "-out", str(pem)]
        subprocess.run(["openssl", *words], check=True, capture_output=True)
        settings[location] = str(pem)
        settings[f"ssl.{store}.type"] = "PEM"
    settings.pop("ssl.key.password", None)


if __name__ == "__main__":
    sys.exit(main([sys.argv[1]], Path(sys.argv[-1])))
