"""Fourth stage: how large tiles are, what stays in L1, which layers run together."""
