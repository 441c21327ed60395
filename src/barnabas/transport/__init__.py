"""Connections: of a listener (frames in, responses out, in order), of clients, between nodes; TLS."""
