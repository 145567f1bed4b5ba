"""What calls of ATen mean in Core IR, whoever makes them: a program of PyTorch, a file of NAC."""
