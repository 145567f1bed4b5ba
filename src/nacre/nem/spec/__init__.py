"""The declared-once data of NEM: opcodes, units, decorators, limits, families and devices."""
