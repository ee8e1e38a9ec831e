"""Adapters: read, planned, put beside parameters or fused into them."""
