"""A worked lowering: how a compiler written against upstream's dialects ends in NEM."""
