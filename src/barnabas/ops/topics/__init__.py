"""Topics: what there is to know about one, and figures read off its log."""
