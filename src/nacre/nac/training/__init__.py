"""Training of programs, on the gradients of Core IR."""
