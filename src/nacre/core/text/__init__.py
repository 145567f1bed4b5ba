"""The text form of Core IR: reading and printing, inverse to each other."""
