"""Programs of NAC: made from modules and lifted back, their interface and their memory."""
