"""PyTorch modules and exported programs as modules of Core IR."""
