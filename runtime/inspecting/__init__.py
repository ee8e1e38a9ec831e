"""What can be said of a checkpoint without reading a tensor."""
