"""`einops.layers`."""
