"""What importers of models share, whatever the format: refusals, a builder, a coverage table."""
