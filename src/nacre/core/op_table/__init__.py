"""The rows of the operation table, one file a group."""
