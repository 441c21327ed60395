"""Questions about a cluster and changes to it, answered without a terminal: what the command line, the console and
Connect share."""
