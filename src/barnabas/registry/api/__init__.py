"""The REST API of the registry: a module for each group of paths, ``application.py`` for all of them."""
