"""The conformance kit: what an architecture must hold, as tests that a plugin's author inherits. It needs pytest."""
