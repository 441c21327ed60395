"""What kafka-python's tests need to start brokers of their own, as its source distribution does not carry it.

Its fixtures render a file of settings from a template, format a directory with `kafka-storage.sh`, run `kafka.Kafka` by
`kafka-run-class.sh` and wait for a line. Here are the template, the two scripts for each kind of broker (the directory
is formatted by Kafka's own tool for both), and the class that runs them. Called by the suite of kafka-python.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

from bench.peers.barnabas import barnabas_command
from tools.kafka_jars import java_command

SERVICE = """\
import re, subprocess, threading, time


class ExternalService:
    def __init__(self, host, port):
        self.host, self.port = host, port

    def open(self): ...
    def close(self): ...
    def start(self): ...
    def stop(self): ...
    def dump_logs(self): ...


class SpawnedService:
    def __init__(self, args, env):
        self.args, self.env, self.said = args, env, []

    def start(self):
        words = dict(stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        self.process = subprocess.Popen([str(word) for word in self.args], env=self.env, **words)
        self.reader = threading.Thread(target=lambda: self.said.extend(self.process.stdout), daemon=True)
        self.reader.start()

    def wait_for(self, pattern, timeout=30):
        deadline = time.monotonic() + max(timeout, 60)  # the machine may be busy
        while time.monotonic() < deadline:
            if re.search(pattern, "".join(self.said)):
                return True
            if self.process.poll() is not None:
                return False
            time.sleep(0.05)
        return False

    def dump_logs(self):
        print("".join(self.said))

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.reader.join()
        self.process.stdout.close()
"""
_PROPERTIES = """\
process.roles=broker,controller
node.id={broker_id}
controller.quorum.bootstrap.servers={host}:{controller_port}
listeners={transport}://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners={transport}://{host}:{port},CONTROLLER://{host}:{controller_port}
listener.security.protocol.map={transport}:{transport},CONTROLLER:PLAINTEXT
inter.broker.listener.name={transport}
controller.listener.names=CONTROLLER
log.dirs={tmp_dir}/data
num.partitions={partitions}
default.replication.factor={replicas}
auto.create.topics.enable={auto_create_topic}
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
{acl_config}
{sasl_config}
{ssl_config}
"""
_LOGINS = "KafkaServer {{\n  {jaas_config}\n}};\n"
_TOOL_LOGIN = """\
security.protocol={transport}
sasl.mechanism={sasl_mechanism}
sasl.jaas.config={jaas_config}
"""
# Kafka says that it has started only where it is told to say anything.
_LOGGING = """\
appender.console.type=Console
appender.console.name=console
appender.console.layout.type=PatternLayout
appender.console.layout.pattern=%m%n
rootLogger.level=INFO
rootLogger.appenderRef.console.ref=console
"""


def write_servers(workspace: Path, version: str, kind: str) -> Path:
    """Writes all of it below the workspace; returns what the tests take for Kafka's distribution."""
    resources = workspace / "servers" / "resources" / "default"
    resources.mkdir(parents=True, exist_ok=True)
    (resources / "kafka.properties").write_text(_PROPERTIES)
    (resources / "kafka_server_jaas.conf").write_text(_LOGINS)
    (resources / "sasl_command.conf").write_text(_TOOL_LOGIN)
    logging = resources / "log4j2.properties"
    logging.write_text(_LOGGING)
    scripts = workspace / "servers" / version / f"kafka-bin-{kind}" / "bin"
    scripts.mkdir(parents=True, exist_ok=True)
    mains = {"kafka-storage.sh": "kafka.tools.StorageTool", "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand"}
    for script, main in mains.items():
        _script(scripts / script, java_command(main, options=("-Xmx256M", "-XX:TieredStopAtLevel=1")))
    if kind == "kafka":
        # The main to run comes with the call; of two settings of one name Java takes the later.
        command = [word for word in java_command("", options=("-Xmx400M",)) if word]
        told = f"-Dlog4j2.configurationFile={logging}"
        _script(scripts / "kafka-run-class.sh", [*command, told], options="$KAFKA_OPTS")
    else:
        shim = Path(__file__).with_name("spawned_barnabas.py")
        _script(scripts / "kafka-run-class.sh", [sys.executable, str(shim), str(barnabas_command())])
    return scripts.parent


def _script(path: Path, command: list[str], *, options: str = "") -> None:
    path.write_text(f'#!/bin/sh\nexec {shlex.join(command)} {options} "$@"\n')
    path.chmod(0o755)
