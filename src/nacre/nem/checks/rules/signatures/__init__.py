"""Rules about operands, attributes and shapes of opcodes."""
