"""Moving replicas between brokers: plans, progress and throttles."""
