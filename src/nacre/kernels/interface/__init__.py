"""What a primitive is, and how functions of arrays become one: calls, shapes, runs, memory."""
