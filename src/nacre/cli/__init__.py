"""The command line: one verb a file, translating and delegating."""
