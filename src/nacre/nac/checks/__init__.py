"""What sections promise each other: one function a promise, each yields what breaks it."""
