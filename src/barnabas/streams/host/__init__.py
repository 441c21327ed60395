"""The host of Streams applications in Spark: the plan, the operator that runs tasks, their state, and queries."""
