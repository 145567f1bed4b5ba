"""What each operation of ATen means in Core IR, one family a module."""
