"""What hides scores before a softmax: one mask for all of it, and its rows levelled for f16."""
