"""Language models for a device: a plan that reads prompts, one that writes tokens."""
