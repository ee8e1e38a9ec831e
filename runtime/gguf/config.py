"""The config of a GGUF model, in the form of the config.json that the same model is published with.

Field names are those of Transformers 4; keys are those of the GGUF specification (ggml project, docs/gguf.md).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.errors import ConfigError
from weightloom.engine.gguf import Gguf
from weightloom.engine.planning.build import build_plan
from weightloom.engine.spec import TensorSpec
from weightloom.rules import load_rules
from weightloom.runtime.gguf.fields import Fields
from weightloom.runtime.gguf.rope import rope_scaling
from weightloom.runtime.gguf.unserved import refuse_unserved

LAYOUT = "gguf"
_GROUP = 32
_FREQUENCIES = "rope_freqs.weight"


@dataclass(frozen=True, slots=True)
class _Known:
    """What `general.architecture` stands for in a config.json."""

    model_type: str
    class_name: str


_KNOWN = {"llama": _Known("llama", "LlamaForCausalLM")}


def gguf_config(model: Gguf, checkpoint: Checkpoint) -> dict[str, Any]:
    """Give the config of a GGUF model: `read_gguf` and `open_gguf` of the same files.

    `quantization` describes the modules that come as weight, scales and biases, by canonical names. Raises
    ConfigError for an architecture that is not known, and for keys that are missing, cannot be or are not served.
    """
    fields = Fields(model.metadata, str(model.files[0]))
    architecture = fields.text("general.architecture")
    known = _KNOWN.get(architecture)
    if known is None:
        raise fields.bad("general.architecture", f"one of {', '.join(_KNOWN)}")
    refuse_unserved(fields, architecture)
    config = {
        "architectures": [known.class_name],
        "model_type": known.model_type,
        **_sizes(fields, architecture, model),
        **_rotary(fields, architecture, checkpoint),
        **_windows(fields, architecture),
        **_switches(model),
        **_ids(fields),
    }
    return {**config, **_quantization(checkpoint, known.model_type, config)}


def _sizes(fields: Fields, architecture: str, model: Gguf) -> dict[str, Any]:
    if fields.whole(f"{architecture}.expert_count", 0):
        raise fields.bad(f"{architecture}.expert_count", "no experts: such models are not read from GGUF")
    hidden = fields.at_least_one(f"{architecture}.embedding_length")
    heads = fields.at_least_one(f"{architecture}.attention.head_count")
    head_dim = fields.whole(f"{architecture}.attention.key_length", hidden // heads)
    if fields.whole(f"{architecture}.attention.value_length", head_dim) != head_dim:
        raise fields.bad(f"{architecture}.attention.value_length", f"{head_dim}, as the keys have")
    if fields.whole(f"{architecture}.rope.dimension_count", head_dim) != head_dim:
        raise fields.bad(f"{architecture}.rope.dimension_count", f"{head_dim}: whole heads turn")
    return {
        "hidden_size": hidden,
        "intermediate_size": fields.whole(f"{architecture}.feed_forward_length"),
        "num_hidden_layers": fields.whole(f"{architecture}.block_count"),
        "num_attention_heads": heads,
        "num_key_value_heads": fields.whole(f"{architecture}.attention.head_count_kv", heads),
        "head_dim": head_dim,
        "vocab_size": _vocabulary(fields, architecture, model),
        "max_position_embeddings": fields.whole(f"{architecture}.context_length"),
        "rms_norm_eps": fields.positive(f"{architecture}.attention.layer_norm_rms_epsilon"),
        "hidden_act": "silu",
    }


def _vocabulary(fields: Fields, architecture: str, model: Gguf) -> int:
    """The rows of the embedding decide: a vocabulary may be padded."""
    embedding = model.tensors.get("token_embd.weight")
    return embedding.shape[0] if embedding and embedding.shape else fields.whole(f"{architecture}.vocab_size")


def _rotary(fields: Fields, architecture: str, checkpoint: Checkpoint) -> dict[str, Any]:
    theta = fields.positive(f"{architecture}.rope.freq_base", 10000.0)
    scaling = rope_scaling(fields, architecture, theta, _divisors(checkpoint))
    return {"rope_theta": theta, **({} if scaling is None else {"rope_scaling": scaling})}


def _divisors(checkpoint: Checkpoint) -> tuple[float, ...]:
    spec = checkpoint.tensors.get(_FREQUENCIES)
    if spec is None:
        return ()
    if spec.dtype != "F32" or len(spec.shape) != 1:
        raise ConfigError(f"{_FREQUENCIES} is {spec}", expected="F32 [frequencies]", tensor=_FREQUENCIES)
    raw = bytearray(spec.nbytes)
    checkpoint.read_into(_FREQUENCIES, 0, memoryview(raw))
    return struct.unpack(f"<{len(raw) // 4}f", raw)


def _windows(fields: Fields, architecture: str) -> dict[str, Any]:
    window = fields.whole(f"{architecture}.attention.sliding_window", 0)
    if not window:
        return {}
    layers = fields.whole(f"{architecture}.block_count")
    return {"sliding_window": window, "layer_types": ["sliding_attention"] * layers}


def _switches(model: Gguf) -> dict[str, Any]:
    return {
        "tie_word_embeddings": "output.weight" not in model.tensors,
        "attention_bias": "blk.0.attn_q.bias" in model.tensors,
        "mlp_bias": "blk.0.ffn_down.bias" in model.tensors,
    }


def _ids(fields: Fields) -> dict[str, Any]:
    names = {"bos_token_id": "bos", "eos_token_id": "eos", "pad_token_id": "padding"}
    keys = {name: f"tokenizer.ggml.{key}_token_id" for name, key in names.items()}
    return {name: fields.whole(key) for name, key in keys.items() if key in fields.values}


def _quantization(checkpoint: Checkpoint, model_type: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Most modules' bits for all, and each other one on its own."""
    rules = load_rules(model_type, layout=LAYOUT)
    packed = _packed(build_plan(checkpoint, rules, config=config).params)
    if not packed:
        return {}
    usual = Counter(packed.values()).most_common(1)[0][0]
    others = {path: _section(own) for path, own in sorted(packed.items()) if own != usual}
    return {"quantization": {**_section(usual), **others}}


def _section(how: tuple[int, str]) -> dict[str, Any]:
    bits, mode = how
    return {"group_size": _GROUP, "bits": bits, **({} if mode == "affine" else {"mode": mode})}


def _packed(params: Mapping[str, TensorSpec]) -> dict[str, tuple[int, str]]:
    """Give bits and mode of each module whose packed weight and scales are there; words of a group are its bits."""
    found: dict[str, tuple[int, str]] = {}
    for name, scales in params.items():
        path = name.removesuffix(".scales")
        weight = params.get(f"{path}.weight")
        if path != name and weight is not None and weight.dtype == "U32" and scales.shape[-1]:
            mode = "affine" if f"{path}.biases" in params else "mxfp4"
            found[path] = weight.shape[-1] // scales.shape[-1], mode
    return found
