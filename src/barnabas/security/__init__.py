"""Authentication (PLAIN, SCRAM, tokens, certificates), ACLs and quotas, as pure functions."""
