"""Commands that run and show pipelines on Spark."""
