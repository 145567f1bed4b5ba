"""Rules about buffers, regions, and the bytes that tasks share."""
