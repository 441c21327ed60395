"""A node: settings, routing, one handler per API, permissions, quotas, metrics, start and stop."""
