"""The architectures that come with weightloom, a family a file."""
