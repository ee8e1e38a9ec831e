"""Running a model: generate, embed."""
