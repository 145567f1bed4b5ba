"""Sixth stage: tasks in their order, what each waits for, tokens."""
