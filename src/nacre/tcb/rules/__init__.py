"""The codes of TCB: what texts, files and images promise."""
