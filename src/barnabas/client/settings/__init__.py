"""The settings of the clients, declared and typed."""
