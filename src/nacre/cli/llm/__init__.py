"""The verbs of `nacre llm`."""
