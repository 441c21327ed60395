"""Connectors that come with the package. Each module imports without the optional packages that it needs to run."""
