"""Tokenizers of the Hugging Face hub as programs of TISA: exactly, or not at all."""
