"""Quantizing on load and in convert: what was asked, the plan that does it, and what the config then says."""
