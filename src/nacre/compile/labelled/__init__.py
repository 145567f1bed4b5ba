"""Accuracy on labelled data: metrics, pictures as inputs, a plan beside its model."""
