"""Sections of a file, one file a tag: a reader and a writer that are inverses."""
