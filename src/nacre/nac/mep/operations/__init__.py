"""What the instructions of plans do."""
