"""`nacre nac`: its verbs, and what they share."""
