"""Avro data to Arrow columns: a compiled decoder, the plan that it follows, and the arrays made of what it has read."""
