"""Images as bytes, and back."""
