"""Connections to brokers, the metadata of a cluster, and its coordinators."""
