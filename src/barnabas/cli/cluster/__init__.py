"""Commands about a cluster: brokers, topics, groups, settings, permissions, moves."""
