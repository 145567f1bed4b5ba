"""What a language model takes on a device, from its configuration: no weights are needed."""
