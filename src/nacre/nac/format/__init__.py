"""The file as values: a reader and a writer that are exact inverses, one module a section."""
