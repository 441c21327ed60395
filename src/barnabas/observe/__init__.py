"""What the broker tells of itself: log lines, and the hops of a request."""
