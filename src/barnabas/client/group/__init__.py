"""A consumer's membership in a group, in both protocols, and its committed offsets."""
