"""The files that a GGUF model would be published with beside its weights, made from its keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weightloom.engine.gguf import Gguf, open_gguf, read_gguf
from weightloom.runtime.gguf.config import gguf_config
from weightloom.runtime.gguf.tokenizer import gguf_tokenizer
from weightloom.runtime.tokenizing.template_search import DEFAULT
from weightloom.runtime.tokenizing.tokenizer import Tokenizer


def gguf_side_files(path: str | Path) -> dict[str, bytes]:
    """Give config.json, tokenizer.json, tokenizer_config.json and generation_config.json of a GGUF model.

    A file without a vocabulary gives config.json alone. Raises as `read_gguf`, `gguf_config` and `gguf_tokenizer` do.
    """
    model = read_gguf(path)
    with open_gguf(path) as checkpoint:
        config = gguf_config(model, checkpoint)
    files = {"config.json": _json(config)}
    if "tokenizer.ggml.model" not in model.metadata:
        return files
    tokenizer = gguf_tokenizer(model)
    return {
        **files,
        "generation_config.json": _json(_generation(config, tokenizer)),
        "tokenizer.json": tokenizer.backend.to_str(pretty=True).encode(),
        "tokenizer_config.json": _json(_settings(model, config, tokenizer)),
    }


def _generation(config: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    ids = {name: config[name] for name in ("bos_token_id", "pad_token_id") if name in config}
    ends = sorted(tokenizer.stop_ids)
    return {**ids, "eos_token_id": ends[0] if len(ends) == 1 else ends} if ends else ids


def _settings(model: Gguf, config: Mapping[str, Any], tokenizer: Tokenizer) -> dict[str, Any]:
    keys = ("add_bos_token", "add_eos_token", "add_space_prefix")
    flags = {key: model.metadata[f"tokenizer.ggml.{key}"] for key in keys if f"tokenizer.ggml.{key}" in model.metadata}
    return {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": config["max_position_embeddings"],
        "clean_up_tokenization_spaces": False,
        **tokenizer.special,
        **flags,
        **_templates(tokenizer),
    }


def _templates(tokenizer: Tokenizer) -> dict[str, Any]:
    """A single template is stated as its text, several as a list by name."""
    texts = {name: template.text for name, template in tokenizer.templates.items()}
    if not texts:
        return {}
    several = [{"name": name, "template": text} for name, text in texts.items()]
    return {"chat_template": texts[DEFAULT] if set(texts) == {DEFAULT} else several}


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
