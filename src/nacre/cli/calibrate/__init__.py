"""`nacre calibrate`: a device fitted to measurements."""
