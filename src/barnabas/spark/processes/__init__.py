"""Processes that Spark starts: where Java and Spark are found, and what makes them start faster."""
