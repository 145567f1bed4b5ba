"""Where a plan loses its accuracy: noise layer by layer, what would help, two plans beside."""
