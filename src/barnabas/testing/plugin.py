"""The pytest plugin: the fixture ``broker``."""
