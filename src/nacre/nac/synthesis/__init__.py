"""New networks: a grammar learned from files, what follows from it, and a search over that."""
