"""What the debugger knows of a bundle beyond its program: layers, nodes, the model's own values."""
