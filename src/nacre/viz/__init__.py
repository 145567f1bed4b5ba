"""Pictures of what nacre found out: pages that people read in a browser."""
