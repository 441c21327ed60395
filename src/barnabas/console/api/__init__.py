"""Endpoints of the console, a module for each noun."""
