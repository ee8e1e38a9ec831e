"""What a checkpoint shows of itself, and which architecture it is for."""
