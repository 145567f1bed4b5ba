"""Task control blocks: what a binder makes of a NEM program, as text, as bytes, and run."""
