"""Inputs of a model where nobody gives any: what each is for, and values that fit that."""
