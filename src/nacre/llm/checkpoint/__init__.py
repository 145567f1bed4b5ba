"""Checkpoints of transformers: a folder, or a model in memory, read as a GGUF file would be."""
