"""Rules alone: how checkpoints of a model type that nobody knows lead to the names of a Llama."""
