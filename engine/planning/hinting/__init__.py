"""What probably went wrong, said beside what does not fit."""
