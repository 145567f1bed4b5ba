"""Fifth stage: where tensors and weights lie."""
