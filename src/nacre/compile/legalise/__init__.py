"""First and second stage: operations, axes and types that the device has."""
