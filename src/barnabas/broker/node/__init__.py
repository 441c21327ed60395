"""One node: how its parts are built, started, listened on and stopped."""
