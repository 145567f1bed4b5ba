"""Our quantiser beside those of others."""
