"""Rules about quantisation descriptors."""
