"""Rules about element types and type families."""
