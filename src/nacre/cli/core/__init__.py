"""`nacre core`: its verbs, and what they share."""
