"""Mistral's published vocabularies, five SentencePiece models and two tekken files, from the Python package index."""

from __future__ import annotations

from pathlib import Path

from tests import wheels

PACKAGE, VERSION = "mistral-common", "1.13.1"
FILES = (
    "tokenizer.model.v1",
    "mistral_instruct_tokenizer_240216.model.v2",
    "mistral_instruct_tokenizer_240323.model.v3",
    "mistral_instruct_tokenizer_241114.model.v7",
    "mistral_instruct_tokenizer_241114.model.v7m1",
    "tekken_240718.json",
    "tekken_240911.json",
)


def fetch(cache: Path) -> Path:
    """Give the folder of the files, fetched into `cache` unless it is there."""
    return wheels.fetch(cache, PACKAGE, VERSION, f"mistral_common/data/{FILES[-1]}").parent
