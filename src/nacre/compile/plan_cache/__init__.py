"""Plans that were made before, by all that they depend on."""
