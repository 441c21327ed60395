"""The transaction coordinator, and the markers that end transactions."""
