"""The measuring harness: Apache Kafka and Barnabas on the same machine, in the same run, client for client.

Peers start and stop brokers, clients put load on them, `measure` reads what the brokers cost, `workloads` says what is
run, and `report` prints it. It is a tool, not part of the product: nothing of it is imported by `barnabas`.
"""
