"""Running a plan: memory, machine, sessions. The only room with state."""
