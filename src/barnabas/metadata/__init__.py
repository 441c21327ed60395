"""The records that describe a cluster, the immutable image made of them, the decisions of the controller."""
