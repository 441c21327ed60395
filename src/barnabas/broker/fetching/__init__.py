"""Fetch sessions, turns of readers, and the choice of a replica to read from."""
