"""Consumer groups: moving their committed offsets."""
