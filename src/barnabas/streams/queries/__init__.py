"""Interactive queries: named stores, read from their changelog topics by the client alone, without Spark."""
