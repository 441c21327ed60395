"""Commands that run a Connect worker and manage its connectors."""
