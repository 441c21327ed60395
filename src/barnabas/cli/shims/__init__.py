"""Stand-ins for Kafka's scripts, ``kafka-topics.sh`` and the like: its flags and its words, without a JVM to start.

They are for scripts and test suites that call those names. People have ``barnabas``, which says more.
"""
