"""Files of other tokenizers, read without their packages: SentencePiece, tiktoken and tekken."""
