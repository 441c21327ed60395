"""Coordinators: groups and transactions as pure machines, and the runtime that runs them on their partitions."""
