"""Tiny models that run, as published: each architecture's checkpoint, written with NumPy, and a tokenizer of bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors

from tests.cases.fixtures import filled, write
from tests.plugins.tiny import CONFIGS
from weightloom.plugins import PluginManager, param_specs

BERT: dict[str, Any] = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 260,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 24,
    "torch_dtype": "float32",
}
TOWERS = {"vision_tower.x.weight": np.ones((2, 2), np.float32), "audio_tower.y.weight": np.ones((2, 2), np.float32)}
NAMES = {
    "mixtral": ("block_sparse_moe", "w1", "w3", "w2"),
    "qwen3_moe": ("mlp", "gate_proj", "up_proj", "down_proj"),
}


def config_of(name: str, **changes: Any) -> dict[str, Any]:
    base = BERT if name == "bert" else {**CONFIGS[name], "vocab_size": 260, "torch_dtype": "float32"}
    return {**base, **changes}


def write_model(folder: Path, name: str, config: Mapping[str, Any] | None = None, chosen: str | None = None) -> Path:
    """Write a tiny checkpoint of a family in its published names, and its config; no tokenizer.

    `chosen` is which of the family's architectures.
    """
    content = config_of(name) if config is None else dict(config)
    architecture = PluginManager().architecture(name, chosen)
    specs = param_specs(architecture.build(architecture.read_config(content)))
    shapes = dict(_published(name, {key: spec.shape for key, spec in specs.items()}))
    folder.mkdir(parents=True, exist_ok=True)
    write(folder / "model.safetensors", filled(shapes, seed=5))
    (folder / "config.json").write_text(json.dumps(content))
    return folder


def _published(name: str, shapes: Mapping[str, tuple[int, ...]]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Give the names on disk; experts are tensors of their own there."""
    mlp, gate, up, down = NAMES.get(name, ("mlp", "", "", ""))
    for key, shape in shapes.items():
        layer, found, part = key.partition(".mlp.experts.")
        for expert in range(shape[0]) if found else ():
            place = f"{layer}.{mlp}.experts.{expert}"
            if part == "gate_up_proj":
                yield from ((f"{place}.{half}.weight", (shape[1] // 2, shape[2])) for half in (gate, up))
            else:
                yield f"{place}.{down}.weight", shape[1:]
        if not found:
            yield (key.replace(".mlp.gate.", f".{mlp}.gate.") if name == "mixtral" else key), shape


def byte_tokenizer() -> tokenizers.Tokenizer:
    """Every byte is a token of its own: each character beyond ASCII spans several."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = tokenizers.Tokenizer(models.BPE(vocab={byte: number for number, byte in enumerate(alphabet)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(["<s>", "</s>"])
    return made


def add_tokenizer(folder: Path, **settings: Any) -> Path:
    """Put tokenizer.json and tokenizer_config.json beside the weights."""
    byte_tokenizer().save(str(folder / "tokenizer.json"))
    content = {"bos_token": "<s>", "eos_token": {"content": "</s>"}, **settings}
    (folder / "tokenizer_config.json").write_text(json.dumps(content))
    return folder


def runnable(folder: Path, name: str = "llama", **changes: Any) -> Path:
    """Write a tiny model with a tokenizer."""
    return add_tokenizer(write_model(folder, name, config_of(name, **changes)))


def pair_tokenizer(folder: Path, **settings: Any) -> Path:
    """Put a tokenizer beside the weights that frames pairs, and tells their texts apart."""
    add_tokenizer(folder, **settings)
    made = byte_tokenizer()
    ids = [(token, made.token_to_id(token)) for token in ("<s>", "</s>")]
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=ids
    )
    made.save(str(folder / "tokenizer.json"))
    return folder


def classifier(folder: Path, *labels: str, **changes: Any) -> Path:
    """Write a tiny BERT with a classifier (of one label unless they are named) and a tokenizer for pairs."""
    named = {str(number): label for number, label in enumerate(labels or ("relevance",))}
    config = config_of("bert", architectures=["BertForSequenceClassification"], id2label=named, **changes)
    return pair_tokenizer(write_model(folder, "bert", config, "bert_classifier"))


def sentence_files(folder: Path, *, normalize: bool = True, mode: str = "mean_tokens") -> Path:
    """Put the files of sentence-transformers beside the weights."""
    steps = [("", "Transformer"), ("1_Pooling", "Pooling"), *([("2_Normalize", "Normalize")] if normalize else [])]
    listed = [
        {"idx": i, "path": path, "type": f"sentence_transformers.models.{t}"} for i, (path, t) in enumerate(steps)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps({f"pooling_mode_{mode}": True}))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 20, "do_lower_case": False}))
    return folder


def changed(folder: Path, **fields: Any) -> Path:
    """Change fields of config.json; None takes one away."""
    content = {**json.loads((folder / "config.json").read_text()), **fields}
    (folder / "config.json").write_text(json.dumps({k: v for k, v in content.items() if v is not None}))
    return folder


def vlm(folder: Path) -> Path:
    """Write a Llama below the names of a whole with towers, and the whole's config."""
    source = write_model(folder, "llama")
    arrays = {
        f"language_model.{name}": np.array(array) for name, array in mx.load(str(source / "model.safetensors")).items()
    }
    write(source / "model.safetensors", {**arrays, **TOWERS})
    (source / "config.json").write_text(
        json.dumps({"model_type": "llava", "text_config": config_of("llama"), "vision_config": {"depth": 2}})
    )
    return source
