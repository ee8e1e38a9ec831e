"""The file system under a save: claim a place, commit in one step, put back what was cut off."""
