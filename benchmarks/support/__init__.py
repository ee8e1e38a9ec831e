"""What several benchmarks share: checkpoints of real shapes, runs in fresh processes, tables."""
