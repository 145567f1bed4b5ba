"""The program as NEM text: named types, regions, statements."""
