"""What comes out: a plan with its weights, run, timed and compared with its model."""
