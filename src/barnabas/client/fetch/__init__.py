"""Fetching ahead: sessions, cursors, isolation, truncation."""
