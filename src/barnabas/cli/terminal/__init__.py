"""What all commands share: connection, profiles, output, verbs."""
