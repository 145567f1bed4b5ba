"""What each call of ATen becomes, one file a group."""
