"""The rules, and the order in which they are asked."""
