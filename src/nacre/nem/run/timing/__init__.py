"""Time: costs, units, the event loop, and where the cycles went."""
