"""Chains of a bound program: which of them pay, and what they save."""
