"""Rules that the reader and the resolver emit where they meet the mistake, one file a group."""
