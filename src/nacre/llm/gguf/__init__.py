"""GGUF: files of language models, read within bounds."""
