"""One function a rule, one file a group."""
