"""Search through the records of topics: conditions on records, and what bytes a match must contain."""
