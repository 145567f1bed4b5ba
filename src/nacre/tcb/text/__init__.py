"""Images as assembler text, and back."""
