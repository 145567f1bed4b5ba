"""Core IR: the graph IR that everything passes through."""
