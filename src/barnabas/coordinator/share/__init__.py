"""Share groups (KIP-932) in the group coordinator: membership, assignment, and which share-partitions have state."""
