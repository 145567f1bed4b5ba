"""The machines that run images: on bytes, and by cycles."""
