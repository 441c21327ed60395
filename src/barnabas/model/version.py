"""The version of this package; the build reads it from here. A release has a tag ``v`` and this version."""

__version__ = "0.2.0.dev0"
