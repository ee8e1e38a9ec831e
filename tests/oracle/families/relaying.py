"""Relaying: what a reference saved, rewritten into the names and layout that a family without a reference publishes.

The reference computes the same under other names. Here are the renames and cuts in NumPy, there and back, by model
type; none of weightloom's rules are used.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from tests.families.family import Case, Family

State = dict[str, np.ndarray[Any, Any]]
Config = dict[str, Any]


def _same_config(config: Config) -> Config:
    return dict(config)


def _same_state(state: State, config: Config) -> State:
    return dict(state)


@dataclass(frozen=True)
class Relaying:
    """From a family's config to the reference's, and between the tensors of both; `config` is always the family's."""

    config: Callable[[Config], Config] = _same_config
    published: Callable[[State, Config], State] = _same_state
    reference: Callable[[State, Config], State] = _same_state


def _stacked_experts(state: State, config: Config) -> State:
    """Put the matrices of all experts of a layer into one tensor, gate over up."""
    parts = {name: re.fullmatch(r"(.+\.experts)\.\d+\.gate_proj\.weight", name) for name in state}
    found = {name: array for name, array in state.items() if not re.search(r"\.experts\.\d+\.", name)}
    for layer in {part[1] for part in parts.values() if part}:
        gate, up, down = (
            np.stack([state[f"{layer}.{expert}.{name}_proj.weight"] for expert in range(config["n_routed_experts"])])
            for name in ("gate", "up", "down")
        )
        found |= {f"{layer}.gate_up_proj": np.concatenate([gate, up], axis=1), f"{layer}.down_proj": down}
    return found


def _flat_heads(state: State, config: Config) -> State:
    """Give vectors of heads as one vector, as files have them; mlx-lm itself leads back."""
    per_head = re.compile(r"\.attn\.(k_k|k_a|g_norm\.(weight|bias))$")
    return {name: array.reshape(-1) if per_head.search(name) else array for name, array in state.items()}


def _minicpm_as_granite(config: Config) -> Config:
    layers, hidden = config["num_hidden_layers"], config["hidden_size"]
    return {
        **{name: value for name, value in config.items() if name not in ("scale_emb", "scale_depth", "dim_model_base")},
        "embedding_multiplier": config["scale_emb"],
        "attention_multiplier": (hidden // config["num_attention_heads"]) ** -0.5,
        "residual_multiplier": config["scale_depth"] / layers**0.5,
        "logits_scaling": hidden / config["dim_model_base"],
        "tie_word_embeddings": config.get("tie_word_embeddings", True),
    }


_INTERNLM2 = {
    r"^model\.embed_tokens": "model.tok_embeddings",
    r"^lm_head": "output",
    "input_layernorm": "attention_norm",
    "post_attention_layernorm": "ffn_norm",
    r"self_attn\.o_proj": "attention.wo",
    r"mlp\.gate_proj": "feed_forward.w1",
    r"mlp\.down_proj": "feed_forward.w2",
    r"mlp\.up_proj": "feed_forward.w3",
}
_QKV = re.compile(r"(.*)\.self_attn\.q_proj\.(weight|bias)")
_WQKV = re.compile(r"(.*)\.attention\.wqkv\.(weight|bias)")


def _internlm2_as_llama(config: Config) -> Config:
    return {**config, "attention_bias": config.get("bias", True)}


def _groups(config: Config) -> tuple[int, int, int]:
    heads, kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
    return kv_heads, heads // kv_heads, config["hidden_size"] // heads


def _internlm2_published(state: State, config: Config) -> State:
    kv_heads, shared, dims = _groups(config)
    found = renamed({name: array for name, array in state.items() if not re.search("[qkv]_proj", name)}, _INTERNLM2)
    for layer, kind in (part.groups() for name in state if (part := _QKV.fullmatch(name))):
        parts = (state[f"{layer}.self_attn.{which}_proj.{kind}"] for which in "qkv")
        by_head = [part.reshape(kv_heads, -1, dims, *part.shape[1:]) for part in parts]
        whole = np.concatenate(by_head, axis=1)
        found[f"{layer}.attention.wqkv.{kind}"] = whole.reshape(kv_heads * (shared + 2) * dims, *whole.shape[3:])
    return found


def _internlm2_for_llama(state: State, config: Config) -> State:
    kv_heads, shared, dims = _groups(config)
    back = {new: old.replace("^", "").replace("\\", "") for old, new in _INTERNLM2.items()}
    found = renamed({name: array for name, array in state.items() if "wqkv" not in name}, back)
    for name, array in state.items():
        if part := _WQKV.fullmatch(name):
            grouped = array.reshape(kv_heads, shared + 2, dims, *array.shape[1:])
            for which, cut in zip("qkv", np.split(grouped, [shared, shared + 1], axis=1), strict=True):
                found[f"{part[1]}.self_attn.{which}_proj.{part[2]}"] = cut.reshape(-1, *array.shape[1:])
    return found


def _baichuan_published(state: State, config: Config) -> State:
    found = {name: array for name, array in state.items() if not re.search("[qkv]_proj", name)}
    for layer in (part[1] for name in state if (part := _QKV.fullmatch(name))):
        parts = [state[f"{layer}.self_attn.{which}_proj.weight"] for which in "qkv"]
        found[f"{layer}.self_attn.W_pack.weight"] = np.concatenate(parts)
    return found


def _baichuan_for_llama(state: State, config: Config) -> State:
    found = {name: array for name, array in state.items() if "W_pack" not in name}
    for name in set(state) - set(found):
        for which, part in zip("qkv", np.split(state[name], 3), strict=True):
            found[name.replace("W_pack", f"{which}_proj")] = part
    if config.get("norm_head"):
        head = found["lm_head.weight"]
        found["lm_head.weight"] = head / np.linalg.norm(head, axis=1, keepdims=True)
    return found


_REPLACED = {r"self_attn\.linear\.": "self_attn.linear_attn.", r"mlp\.linear\.": "mlp.linear_mlp."}
_REPLACED_BACK = {r"\.linear_(attn|mlp)\.": ".linear."}


RELAYINGS: Mapping[str, Relaying] = {
    "nemotron-nas": Relaying(
        published=lambda state, _: renamed(state, _REPLACED), reference=lambda state, _: renamed(state, _REPLACED_BACK)
    ),
    "baichuan": Relaying(published=_baichuan_published, reference=_baichuan_for_llama),
    "internlm2": Relaying(_internlm2_as_llama, _internlm2_published, _internlm2_for_llama),
    "minicpm": Relaying(_minicpm_as_granite),
    "kimi_k2": Relaying(reference=_stacked_experts),
    "rwkv7": Relaying(published=_flat_heads),
}


def relay(family: Family, case: Case, folder: Path) -> None:
    """Rewrite what the reference saved in `folder` as the family publishes it, the case's config beside it."""
    config = family.config(case)
    state = relaying_of(config).published(tensors(folder), config)
    for file in folder.glob("*.safetensors"):
        file.unlink()
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    write(state, config, folder)


def write(state: State, config: Config, folder: Path, **metadata: str) -> None:
    """Write a checkpoint of one file."""
    folder.mkdir(parents=True, exist_ok=True)
    whole = {name: np.ascontiguousarray(array) for name, array in state.items()}
    save_file(whole, folder / "model.safetensors", metadata={"format": "pt", **metadata})
    (folder / "config.json").write_text(json.dumps(config, indent=2), encoding="utf-8")


def relaying_of(config: Config) -> Relaying:
    """Give the relaying of a config's model type: for one that is not listed, nothing changes."""
    return RELAYINGS.get(config["model_type"], Relaying())


def config_for_reference(config: Config) -> Config:
    """Give the fields that the reference's config class takes."""
    changed = relaying_of(config).config(config)
    return {name: value for name, value in changed.items() if name not in ("model_type", "architectures")}


def state_for_reference(folder: Path, config: Config) -> State:
    """Give a published checkpoint's tensors by the reference's names."""
    return relaying_of(config).reference(tensors(folder), config)


def tensors(folder: Path) -> State:
    """Give all tensors in a folder, by name."""
    found: State = {}
    for file in sorted(folder.glob("*.safetensors")):
        found |= load_file(file)
    return found


def renamed(state: State, names: Mapping[str, str]) -> State:
    """Give the tensors with each regular expression in a name replaced, in order."""
    found: State = {}
    for name, array in state.items():
        for pattern, replacement in names.items():
            name = re.sub(pattern, replacement, name)
        assert name not in found, f"two tensors are called {name}"
        found[name] = array
    return found
