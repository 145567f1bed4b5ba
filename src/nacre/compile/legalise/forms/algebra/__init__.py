"""Forms that are found by what an expression comes to, in whatever order it is spelt."""
