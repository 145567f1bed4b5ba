"""What a comparison of a plan with its model is worth, and where a plan loses most."""
