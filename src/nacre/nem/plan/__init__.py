"""The plan: loops expanded by array arithmetic, order, and the bytes that tasks touch."""
