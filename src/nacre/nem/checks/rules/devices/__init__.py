"""Rules about device configurations."""
