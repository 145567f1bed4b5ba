"""Programs to start from: a template, sized for a device, that its author goes on with."""
