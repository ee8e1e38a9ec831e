"""Tiny random models of the reference implementation, and the checkpoints that it writes of them.

Nothing here imports torch or transformers until a model is asked for, so that collecting the tests stays cheap.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

DTYPES = ("float32", "bfloat16")

_TEXT = {
    "vocab_size": 48,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 32,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_ENCODER = {key: value for key, value in _TEXT.items() if key not in ("num_key_value_heads", "bos_token_id")}
_VISION = {
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 8,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}


@dataclass(frozen=True, slots=True)
class Case:
    """A class of the reference implementation, how its tiny config is made, and how its files were first published.

    `published` turns a name that the reference implementation writes into the one of the first published files,
    `more` names tensors that those files hold besides: name -> the tensor whose bytes it repeats ("" for its own).
    """

    name: str
    class_name: str
    config: Callable[[], Any]
    sample: bool = False
    published: Callable[[str], str] | None = None
    more: tuple[tuple[str, str], ...] = ()


def _config(class_name: str, **values: Any) -> Any:
    import transformers

    return getattr(transformers, class_name)(**values)


def _resnet() -> Any:
    stages = ["stage1", "stage2", "stage3", "stage4"]
    sizes = {"embedding_size": 4, "hidden_sizes": [4, 4, 8, 8], "depths": [1, 1, 1, 1]}
    return _config("ResNetConfig", **sizes, layer_type="basic", out_features=stages)


def _detr() -> Any:
    layers = {"encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 8, "decoder_attention_heads": 8}
    sizes = {"d_model": 16, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24, "num_queries": 8}
    return _config("DetrConfig", use_timm_backbone=False, backbone_config=_resnet(), **layers, **sizes)


def _maskformer() -> Any:
    stages = ["stage1", "stage2", "stage3", "stage4"]
    heads = {"depths": [1, 1, 1, 1], "num_heads": [1, 1, 2, 2], "window_size": 2}
    swin = _config("SwinConfig", image_size=32, patch_size=4, embed_dim=8, **heads, out_features=stages)
    sizes = {"fpn_feature_size": 32, "mask_feature_size": 32}
    return _config("MaskFormerConfig", backbone_config=swin, decoder_config=_detr(), **sizes)


def _llava() -> Any:
    towers = {"vision_config": _config("CLIPVisionConfig", **_VISION), "text_config": _config("LlamaConfig", **_TEXT)}
    return _config("LlavaConfig", **towers, image_token_index=5)


def _gemma3() -> Any:
    towers = {
        "vision_config": _config("SiglipVisionConfig", **_VISION),
        "text_config": _config("Gemma3TextConfig", **_TEXT, head_dim=4),
    }
    return _config("Gemma3Config", **towers, image_token_index=5, mm_tokens_per_image=4)


def _old_layer_norm(name: str) -> str:
    return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")


def _old_vision_tower(name: str) -> str:
    return name.replace("vision_tower.", "vision_tower.vision_model.", 1)


_ALL = (
    Case("mixtral", "MixtralForCausalLM", lambda: _config("MixtralConfig", **_TEXT, num_local_experts=4), True),
    Case(
        "qwen3_moe",
        "Qwen3MoeForCausalLM",
        lambda: _config("Qwen3MoeConfig", **_TEXT, **_EXPERTS, head_dim=4, mlp_only_layers=[0]),
    ),
    Case(
        "qwen2_moe",
        "Qwen2MoeForCausalLM",
        lambda: _config("Qwen2MoeConfig", **_TEXT, **_EXPERTS, shared_expert_intermediate_size=12),
    ),
    Case("llama", "LlamaForCausalLM", lambda: _config("LlamaConfig", **_TEXT), True),
    Case("llama_tied", "LlamaForCausalLM", lambda: _config("LlamaConfig", **_TEXT, tie_word_embeddings=True), True),
    Case("mistral", "MistralForCausalLM", lambda: _config("MistralConfig", **_TEXT)),
    Case("bert", "BertModel", lambda: _config("BertConfig", **_ENCODER), True),
    Case("bert_mlm", "BertForMaskedLM", lambda: _config("BertConfig", **_ENCODER), True),
    Case(
        "bert_old",
        "BertForMaskedLM",
        lambda: _config("BertConfig", **_ENCODER),
        True,
        _old_layer_norm,
        (
            ("bert.embeddings.position_ids", ""),
            ("cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"),
        ),
    ),
    Case("llava", "LlavaForConditionalGeneration", _llava),
    Case("llava_old", "LlavaForConditionalGeneration", _llava, published=_old_vision_tower),
    Case("gemma3", "Gemma3ForConditionalGeneration", _gemma3),
    Case("detr", "DetrForObjectDetection", _detr),
    Case("detr_segmentation", "DetrForSegmentation", _detr),
    Case("maskformer", "MaskFormerForInstanceSegmentation", _maskformer),
)
CASES = {case.name: case for case in _ALL}


@lru_cache(maxsize=4)
def model_of(name: str, dtype: str) -> PreTrainedModel:
    """A model with every parameter and buffer random, from one seed."""
    import torch
    import transformers

    case = CASES[name]
    config = case.config()
    config.dtype = getattr(torch, dtype)
    torch.manual_seed(0)
    model: PreTrainedModel = getattr(transformers, case.class_name)(config).to(config.dtype).eval()
    randomize(model)
    return model


def randomize(model: torch.nn.Module) -> None:
    """Give every parameter and buffer random values; two that share memory get one set."""
    import torch

    generator = torch.Generator().manual_seed(1234)
    done: set[int] = set()
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            if tensor.data_ptr() in done:
                continue
            done.add(tensor.data_ptr())
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator) / 2)
