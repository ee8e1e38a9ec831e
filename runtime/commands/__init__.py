"""The commands, a file each. A command imports what it needs when it runs."""
