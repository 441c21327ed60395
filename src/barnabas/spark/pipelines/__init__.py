"""Pipelines: their definition, their files, the queries that run them, and their published status."""
