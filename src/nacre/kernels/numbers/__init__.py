"""Numbers: rounding, saturation, quantised integers, functions of one number."""
