"""Programs as graphs of words: patterns that people know, and patterns that recur."""
