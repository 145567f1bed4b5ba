"""NEM as bytes: `.nemb` files, which hold the same documents as texts do."""
