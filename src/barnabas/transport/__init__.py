"""Connections of both kinds: the listener's (frames in, answers out, in order) and the client's channel."""
