"""Quotas of clients, of connections and of changes to topics."""
