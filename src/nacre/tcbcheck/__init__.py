"""The verifier: whether an image means what its program means, whatever made it.

It reads the plan of a program and an image, and shares nothing with the binder.
"""
