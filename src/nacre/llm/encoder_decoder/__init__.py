"""Encoder-decoders, T5 and Whisper: a source is read once, then a text is written about it."""
