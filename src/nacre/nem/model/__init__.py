"""Names, constants, includes, families and devices resolved."""
