"""What each primitive means: array function, shape function, work count. Arrays, no languages."""
