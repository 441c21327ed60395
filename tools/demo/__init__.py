"""``make demo``: all five APIs on three brokers, failures on the way, and a comparison with the shop's own books."""
