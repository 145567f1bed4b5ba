"""`nacre bind` and the verbs of `nacre tcb`."""
