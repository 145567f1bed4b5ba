"""From any module of Core IR to the operations that the device has: forms, and their tables."""
