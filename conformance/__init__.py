"""Other people's tests, run against a named broker and compared with a list of what passes.

Apache Kafka goes through the same harness as Barnabas, so that a test which Kafka itself fails is known as such. The
lists are in `verdicts/`, a row per test, and only grow; `docs/CONFORMANCE.md` is made from them. The package knows
nothing of Barnabas but its command line; brokers come from `bench.peers`, the cache and Kafka's jars from `tools`.
"""
