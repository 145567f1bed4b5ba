"""A language model as one `.nac`: its program with the cache as state, tokenizer and plan."""
