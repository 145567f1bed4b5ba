"""Convolutions whose views of memory are made once, when they are bound."""
