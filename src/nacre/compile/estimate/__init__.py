"""Does a model fit, how fast is it, why: estimates and lower bounds."""
