"""Starting, stopping and watching brokers of this machine."""
