"""The codes of language models: what files, models, tokenizers and templates promise."""
