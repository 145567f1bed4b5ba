"""Memories as bytes, elements as views of them, and what the host puts in and takes out."""
