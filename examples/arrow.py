"""A topic as an Arrow table and back, without a Python object per record, and without async."""

import sys

import pyarrow as pa
import pyarrow.compute as pc

import barnabas
from barnabas import ProducerSettings, blocking

servers = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9092"

table = pa.table({"key": [b"%d" % (number % 10) for number in range(50_000)], "value": [b"x" * 100] * 50_000})
with blocking.Producer(ProducerSettings(bootstrap_servers=(servers,))) as producer:
    print(producer.send_arrow(table, "clicks"), "rows sent")

clicks = barnabas.read("clicks", bootstrap_servers=servers)
print(clicks.num_rows, "rows read:", ", ".join(clicks.column_names))
print(pc.value_counts(clicks["partition"]).to_pylist())
