"""Names, dtypes and shapes of large models as published; no bytes behind them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from support.checkpoints import Sizes, qwen3_moe
from weightloom.engine import ModuleNode, RuleSet, TensorSpec, scoped_rules
from weightloom.rules import registry

Tensor = tuple[str, TensorSpec]
_BLOCK = 128


@dataclass(frozen=True)
class Published:
    """A model's tensors, and what its config says of them."""

    model_type: str
    specs: Mapping[str, TensorSpec]
    config: Mapping[str, Any]


def published() -> dict[str, Published]:
    """Give the models that planning is measured on."""
    return {"DeepSeek-V3, FP8": deepseek_v3(), "Mixtral 8x22B": mixtral_8x22b(), "Qwen3-MoE 235B": qwen3_235b()}


def rules_of(model_type: str) -> RuleSet:
    """Give the rules of a model of this type, legacy names last."""
    return scoped_rules([ModuleNode("", "", model_type)], registry, "model")


def deepseek_v3(layers: int = 61, experts: int = 256) -> Published:
    """Give DeepSeek-V3 with its FP8 scales and the layer that predicts a second token: 91,991 tensors as published."""
    ends = [("embed_tokens", 129280, 7168), ("norm", 7168)]
    tensors = [*(_bf16(f"model.{name}", *shape) for name, *shape in ends), _bf16("lm_head", 129280, 7168)]
    for layer in range(layers + 1):
        prefix = f"model.layers.{layer}."
        tensors += _latent_attention(prefix)
        tensors += _fp8_mlp(f"{prefix}mlp.", 18432) if layer < 3 else _fp8_experts(f"{prefix}mlp.", experts)
    tensors += _second_token(f"model.layers.{layers}.")
    config = {
        "num_hidden_layers": layers,
        "num_nextn_predict_layers": 1,
        "tie_word_embeddings": False,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [_BLOCK, _BLOCK]},
    }
    return Published("deepseek_v3", dict(tensors), config)


def mixtral_8x22b() -> Published:
    """Give Mixtral 8x22B: 1,739 tensors."""
    hidden, wide = 6144, 16384
    tensors = [_bf16("model.embed_tokens", 32000, hidden), _bf16("model.norm", hidden), _bf16("lm_head", 32000, hidden)]
    for layer in range(56):
        prefix = f"model.layers.{layer}."
        tensors += [_bf16(f"{prefix}{norm}_layernorm", hidden) for norm in ("input", "post_attention")]
        tensors += [_bf16(f"{prefix}self_attn.{name}_proj", hidden, hidden) for name in "qo"]
        tensors += [_bf16(f"{prefix}self_attn.{name}_proj", 1024, hidden) for name in "kv"]
        tensors.append(_bf16(f"{prefix}block_sparse_moe.gate", 8, hidden))
        for expert in range(8):
            start = f"{prefix}block_sparse_moe.experts.{expert}."
            tensors += [_bf16(f"{start}w1", wide, hidden), _bf16(f"{start}w2", hidden, wide)]
            tensors.append(_bf16(f"{start}w3", wide, hidden))
    return Published("mixtral", dict(tensors), {"num_hidden_layers": 56, "tie_word_embeddings": False})


def qwen3_235b() -> Published:
    """Give Qwen3-MoE 235B: 36,945 tensors."""
    model = qwen3_moe(Sizes(94, 4096, 12288, 64, 4, 128, 151936), 128, 1536)
    return Published(
        "qwen3_moe", {name: TensorSpec("BF16", shape) for name, shape in model.shapes.items()}, model.config
    )


def _bf16(name: str, *shape: int) -> Tensor:
    return f"{name}.weight", TensorSpec("BF16", shape)


def _fp8(name: str, rows: int, columns: int) -> Iterator[Tensor]:
    yield f"{name}.weight", TensorSpec("F8_E4M3", (rows, columns))
    yield f"{name}.weight_scale_inv", TensorSpec("F32", (-(-rows // _BLOCK), -(-columns // _BLOCK)))


def _latent_attention(prefix: str) -> Iterator[Tensor]:
    for norm in ("input_layernorm", "post_attention_layernorm"):
        yield _bf16(prefix + norm, 7168)
    yield _bf16(f"{prefix}self_attn.q_a_layernorm", 1536)
    yield _bf16(f"{prefix}self_attn.kv_a_layernorm", 512)
    for name, rows, columns in (
        ("q_a_proj", 1536, 7168),
        ("q_b_proj", 24576, 1536),
        ("kv_a_proj_with_mqa", 576, 7168),
        ("kv_b_proj", 32768, 512),
        ("o_proj", 7168, 16384),
    ):
        yield from _fp8(f"{prefix}self_attn.{name}", rows, columns)


def _fp8_mlp(prefix: str, width: int) -> Iterator[Tensor]:
    yield from _fp8(f"{prefix}gate_proj", width, 7168)
    yield from _fp8(f"{prefix}up_proj", width, 7168)
    yield from _fp8(f"{prefix}down_proj", 7168, width)


def _fp8_experts(prefix: str, experts: int) -> Iterator[Tensor]:
    yield _bf16(f"{prefix}gate", experts, 7168)
    yield f"{prefix}gate.e_score_correction_bias", TensorSpec("F32", (experts,))
    yield from _fp8_mlp(f"{prefix}shared_experts.", 2048)
    for expert in range(experts):
        yield from _fp8_mlp(f"{prefix}experts.{expert}.", 2048)


def _second_token(prefix: str) -> Iterator[Tensor]:
    yield _bf16(f"{prefix}embed_tokens", 129280, 7168)
    yield from (_bf16(prefix + name, 7168) for name in ("enorm", "hnorm", "shared_head.norm"))
    yield _bf16(f"{prefix}eh_proj", 7168, 14336)
    yield _bf16(f"{prefix}shared_head.head", 129280, 7168)
