"""What people ask of a session: elements of regions, expressions, conditions, statistics."""
