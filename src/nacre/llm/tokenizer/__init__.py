"""Tokenizers of GGUF files as programs of TISA."""
