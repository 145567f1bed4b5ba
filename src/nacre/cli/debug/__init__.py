"""`nacre debug`: the debugger of the terminal."""
