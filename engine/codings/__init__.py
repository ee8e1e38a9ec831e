"""Codings: how a quantized module is stored as several tensors, and which numbers its codes are."""
