"""Rules about loops, tokens, copies, and accesses that nothing orders."""
