"""Chains of tasks whose values between them need no memory."""
