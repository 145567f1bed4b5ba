"""What models spell out, put back into one operation: for inference and for the compiler alike."""
