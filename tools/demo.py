"""``make demo``: a broker comes up, records go in, records come out, and it says how to go on.

Everything is done with the command that users have, so what it prints is what they will see.
"""

from __future__ import annotations

import json
import random
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from barnabas.testing import BrokerProcess

BARNABAS = str(Path(sys.executable).parent / "barnabas")
ORDERS = 10_000


def say(text: str) -> None:
    print(f"\n\033[1m{text}\033[0m" if sys.stdout.isatty() else f"\n{text}", flush=True)


def run(arguments: str, address: str, *, given: str | None = None, shown: str | None = None) -> None:
    print(f"$ {shown or f'barnabas {arguments}'}", flush=True)
    command = [BARNABAS, *shlex.split(arguments), "--bootstrap-server", address]
    subprocess.run(command, input=given, text=True, check=True)


def orders() -> str:
    chance = random.Random(1)
    return "".join(
        f"customer-{chance.randrange(50)}\t{json.dumps({'id': number, 'total': round(chance.uniform(1, 500), 2)})}\n"
        for number in range(ORDERS)
    )


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="barnabas-demo-") as directory:
        say("1. A broker")
        started = time.monotonic()
        with BrokerProcess(directory) as broker:
            address = broker.bootstrap_servers
            print(f"$ barnabas up --port 0 --data-dir {directory}")
            print(f"ready at {address} after {time.monotonic() - started:.2f} s, interpreter included")
            say("2. A topic")
            run("topic create orders -p 3", address)
            say(f"3. {ORDERS:,} records in")
            run(
                r"produce orders -f '%k\t%v' -z lz4 -o count",
                address,
                given=orders(),
                shown=r"generate-orders | barnabas produce orders -f '%k\t%v' -z lz4 -o count",
            )
            say("4. Records out")
            run(r"consume orders -o start -n 5 -f '%p/%o  %k  %v\n'", address)
            run("topic describe orders", address)
        say("5. Next")
        print(
            "  .venv/bin/barnabas up                              a broker of your own, data in ./barnabas-data\n"
            "  .venv/bin/barnabas consume orders --help           offsets, formats, filters\n"
            "  pytest: ask for the fixture `broker`               a fresh broker for each test\n"
            "  README.md, docs/ARCHITECTURE.md                    what it is and how it works"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
