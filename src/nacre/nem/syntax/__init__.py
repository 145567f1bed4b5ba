"""Text to tree and back: lexer, parser, formatter."""
