"""What the cluster knows of applications: their topologies, stores and checkpoints. Needs the client only, no Spark."""
