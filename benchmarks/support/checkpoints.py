"""Checkpoints with the names and shapes of published models, scaled, filled with normal BF16 numbers (norms: ones)."""

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

Shapes = dict[str, tuple[int, ...]]
_NOISE = 8 << 20
_ONE = b"\x80\x3f"


@dataclass(frozen=True)
class Model:
    """A checkpoint to write: its config and the shape of each tensor, all BF16."""

    config: Mapping[str, Any]
    shapes: Shapes

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors."""
        return sum(2 * prod(shape) for shape in self.shapes.values())


@dataclass(frozen=True)
class Sizes:
    """Sizes under the names of a config.json."""

    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int


def _attention(sizes: Sizes, prefix: str) -> Shapes:
    wide, narrow = sizes.num_attention_heads * sizes.head_dim, sizes.num_key_value_heads * sizes.head_dim
    hidden = sizes.hidden_size
    return {
        f"{prefix}input_layernorm.weight": (hidden,),
        f"{prefix}post_attention_layernorm.weight": (hidden,),
        f"{prefix}self_attn.q_proj.weight": (wide, hidden),
        f"{prefix}self_attn.k_proj.weight": (narrow, hidden),
        f"{prefix}self_attn.v_proj.weight": (narrow, hidden),
        f"{prefix}self_attn.o_proj.weight": (hidden, wide),
    }


def _mlp(prefix: str, hidden: int, width: int) -> Shapes:
    return {
        f"{prefix}gate_proj.weight": (width, hidden),
        f"{prefix}up_proj.weight": (width, hidden),
        f"{prefix}down_proj.weight": (hidden, width),
    }


def _ends(sizes: Sizes) -> Shapes:
    table = (sizes.vocab_size, sizes.hidden_size)
    return {"model.embed_tokens.weight": table, "model.norm.weight": (sizes.hidden_size,), "lm_head.weight": table}


def qwen3_moe(sizes: Sizes, experts: int, expert_width: int) -> Model:
    """Give a Qwen3-MoE as published: three tensors an expert, `experts` in each layer."""
    shapes = _ends(sizes)
    for layer in range(sizes.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        shapes |= _attention(sizes, prefix)
        shapes |= {f"{prefix}self_attn.{n}_norm.weight": (sizes.head_dim,) for n in "qk"}
        shapes[f"{prefix}mlp.gate.weight"] = (experts, sizes.hidden_size)
        for expert in range(experts):
            shapes |= _mlp(f"{prefix}mlp.experts.{expert}.", sizes.hidden_size, expert_width)
    config = {
        "architectures": ["Qwen3MoeForCausalLM"],
        "model_type": "qwen3_moe",
        **asdict(sizes),
        "num_experts": experts,
        "moe_intermediate_size": expert_width,
        "num_experts_per_tok": 8,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
        "norm_topk_prob": True,
        "rope_theta": 1000000.0,
        **_COMMON,
    }
    return Model(config, shapes)


def llama(sizes: Sizes) -> Model:
    """Give a dense Llama as published."""
    shapes = _ends(sizes)
    for layer in range(sizes.num_hidden_layers):
        prefix = f"model.layers.{layer}."
        shapes |= _attention(sizes, prefix) | _mlp(f"{prefix}mlp.", sizes.hidden_size, sizes.intermediate_size)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        **asdict(sizes),
        "rope_theta": 10000.0,
        **_COMMON,
    }
    return Model(config, shapes)


_COMMON = {
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "attention_bias": False,
    "torch_dtype": "bfloat16",
}


def write_model(folder: Path, model: Model, shard_bytes: int = 2 << 30) -> Path:
    """Write config and shards of about `shard_bytes`, with an index if there are several."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(model.config, indent=2), encoding="utf-8")
    shards = list(_shards(model.shapes, shard_bytes))
    names = [f"model-{n + 1:05d}-of-{len(shards):05d}.safetensors" for n in range(len(shards))]
    if len(shards) == 1:
        names = ["model.safetensors"]
    noise = _noise()
    for name, shapes in zip(names, shards, strict=True):
        _write_shard(folder / name, shapes, noise)
    if len(shards) > 1:
        owners = {tensor: name for name, shapes in zip(names, shards, strict=True) for tensor in shapes}
        index = {"metadata": {"total_size": model.nbytes}, "weight_map": owners}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index), encoding="utf-8")
    return folder


def _shards(shapes: Shapes, limit: int) -> Iterator[Shapes]:
    taken: Shapes = {}
    size = 0
    for name, shape in sorted(shapes.items()):
        if taken and size + 2 * prod(shape) > limit:
            yield taken
            taken, size = {}, 0
        taken[name], size = shape, size + 2 * prod(shape)
    yield taken


def _noise() -> memoryview:
    numbers = 0.02 * np.random.default_rng(0).standard_normal(_NOISE // 2, dtype=np.float32)
    return memoryview((numbers.view(np.uint32) >> 16).astype(np.uint16)).cast("B")


def _write_shard(path: Path, shapes: Shapes, noise: memoryview) -> None:
    entries, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 2 * prod(shape)
        entries[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [start, end]}
    header = json.dumps({"__metadata__": {"format": "pt"}, **entries}).encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        for number, shape in enumerate(shapes.values()):
            if len(shape) == 1:
                # Norms of one keep activations of the size that trained models have.
                file.write(_ONE * shape[0])
                continue
            for piece in _pieces(noise, number, 2 * prod(shape)):
                file.write(piece)


def _pieces(noise: memoryview, number: int, nbytes: int) -> Iterator[memoryview]:
    """Give so many bytes of the noise, from another place in it for each tensor."""
    at = number * 254 % _NOISE
    while nbytes:
        piece = noise[at : at + nbytes]
        yield piece
        nbytes, at = nbytes - len(piece), 0
