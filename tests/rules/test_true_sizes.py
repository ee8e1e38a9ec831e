"""Published tensors that Transformers saves in other sizes or turned otherwise: here each comes back byte for byte."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.rules.checkpoints import Layout, comes_back, comes_back_and_is_written, model_rules


def test_olmo_hybrid_has_more_channels_of_values(tmp_path: Path) -> None:
    """The ratio of its default config: 2880, 2880 and 5760 of keys, keys and values."""
    config = {
        "linear_num_key_heads": 3,
        "linear_key_head_dim": 4,
        "linear_num_value_heads": 3,
        "linear_value_head_dim": 8,
    }
    attention = "model.layers.0.linear_attn"
    layout = Layout().renamed(
        {
            "model.layers.0.attention_layer_norm.weight": "model.layers.0.input_layernorm.weight",
            "model.layers.0.feedforward_layer_norm.weight": "model.layers.0.post_attention_layernorm.weight",
            "lm_head.weight": "lm_head.weight",
        }
    )
    rows = {"q": 12, "k": 12, "v": 24}
    file = {f"{attention}.{name}_conv1d.weight": layout.array(count, 1, 4) for name, count in rows.items()}
    layout.added(file, {f"{attention}.conv1d.weight": np.concatenate(list(file.values()))})
    rules = model_rules(("", "OlmoHybridForCausalLM", "olmo_hybrid"), ("model", "OlmoHybridModel", "olmo_hybrid"))
    comes_back_and_is_written(tmp_path, layout, rules, config)


def test_molmo2_has_a_small_matrix_of_added_tokens(tmp_path: Path) -> None:
    config = {"text_config": {"vocab_size": 15, "additional_vocab_size": 2}}
    layout = Layout().renamed(
        {
            "lm_head.weight": "lm_head.weight",
            "model.transformer.ln_f.weight": "model.language_model.norm.weight",
            "model.transformer.blocks.0.attn_norm.weight": "model.language_model.layers.0.input_layernorm.weight",
            "model.transformer.blocks.0.mlp.ff_out.weight": "model.language_model.layers.0.mlp.down_proj.weight",
            "model.vision_backbone.image_vit.transformer.resblocks.0.attention.wq.weight": (
                "model.vision_tower.layers.0.self_attn.q_proj.weight"
            ),
        }
    )
    table = [layout.array(rows, 3) for rows in (15, 2)]
    layout.added(
        {
            f"model.transformer.wte.{name}": part
            for name, part in zip(("embedding", "new_embedding"), table, strict=True)
        },
        {"model.language_model.embed_tokens.weight": np.concatenate(table)},
    )
    attention = [layout.array(rows, 3) for rows in (8, 2, 2)]
    layout.added(
        {"model.transformer.blocks.0.self_attn.att_proj.weight": np.concatenate(attention)},
        {
            f"model.language_model.layers.0.self_attn.{name}_proj.weight": part
            for name, part in zip("qkv", attention, strict=True)
        },
    )
    rules = model_rules(
        ("", "Molmo2ForConditionalGeneration", "molmo2"),
        ("model", "Molmo2Model", "molmo2"),
        ("model.vision_tower", "Molmo2VisionModel", "molmo2_vision"),
        ("model.multi_modal_projector", "Molmo2Adapter", "molmo2_adapter"),
        ("model.language_model", "Molmo2TextModel", "molmo2_text"),
    )
    comes_back_and_is_written(tmp_path, layout, rules, config)


@pytest.mark.parametrize("hidden", [4, 6])
def test_qwen3_vl_moe_has_its_experts_turned(tmp_path: Path, hidden: int) -> None:
    """With a hidden size of 6 the gate and up of an expert are square: the version in the config tells."""
    config = {
        "transformers_version": "4.57.0.dev0",
        "text_config": {"hidden_size": hidden, "moe_intermediate_size": 3},
    }
    experts = "model.language_model.layers.0.mlp.experts"
    layout = Layout().same(["lm_head.weight", "model.visual.blocks.0.attn.qkv.weight"])
    file = {f"{experts}.gate_up_proj": layout.array(2, hidden, 6), f"{experts}.down_proj": layout.array(2, 3, hidden)}
    layout.added(file, {name: np.ascontiguousarray(array.swapaxes(1, 2)) for name, array in file.items()})
    rules = model_rules(
        ("", "Qwen3VLMoeForConditionalGeneration", "qwen3_vl_moe"),
        ("model", "Qwen3VLMoeModel", "qwen3_vl_moe"),
        ("model.visual", "Qwen3VLMoeVisionModel", "qwen3_vl_moe_vision"),
        ("model.language_model", "Qwen3VLMoeTextModel", "qwen3_vl_moe_text"),
    )
    comes_back_and_is_written(tmp_path, layout, rules, config)


BASE_IN_HEAD = {
    "llama": (("LlamaForCausalLM", "llama"), ("model", "LlamaModel"), "lm_head.weight"),
    "bert": (("BertForSequenceClassification", "bert"), ("bert", "BertModel"), "classifier.weight"),
    "mamba": (("MambaForCausalLM", "mamba"), ("backbone", "MambaModel"), "lm_head.weight"),
}
BASE_NAMES = {
    "llama": ["embed_tokens.weight", "layers.0.mlp.up_proj.weight", "layers.1.mlp.up_proj.weight", "norm.weight"],
    "bert": ["embeddings.LayerNorm.weight", "encoder.layer.0.output.dense.bias", "pooler.dense.weight"],
    "mamba": ["embeddings.weight", "layers.0.mixer.A_log", "norm_f.weight"],
}


@pytest.mark.parametrize("family", BASE_NAMES)
def test_a_base_checkpoint_in_a_head_model_keeps_its_bare_names(tmp_path: Path, family: str) -> None:
    (class_name, model_type), (base, base_class), head = BASE_IN_HEAD[family]
    layout = Layout().renamed({name: f"{base}.{name}" for name in BASE_NAMES[family]})
    rules = model_rules(("", class_name, model_type), (base, base_class, model_type), base=base)
    plan = comes_back(tmp_path, layout, rules)
    assert {name.startswith(f"{base}.") for name in plan.params} == {True}
    assert head not in plan.params


def test_a_base_checkpoint_with_experts_in_a_head_model(tmp_path: Path) -> None:
    layout = Layout().renamed({name: f"model.{name}" for name in ("embed_tokens.weight", "layers.0.mlp.gate.weight")})
    layout.experts("layers.0.mlp.experts", "model.layers.0.mlp.experts", ("gate_proj", "up_proj", "down_proj"), 12)
    rules = model_rules(("", "Qwen2MoeForCausalLM", "qwen2_moe"), ("model", "Qwen2MoeModel", "qwen2_moe"))
    comes_back(tmp_path, layout, rules)


def test_a_head_checkpoint_in_a_base_model_keeps_its_prefix_and_its_head(tmp_path: Path) -> None:
    """The head has no place: a lenient load leaves it out, and it is written back."""
    layout = Layout().renamed({f"model.{name}": name for name in BASE_NAMES["llama"]}).only_in_file(["lm_head.weight"])
    rules = model_rules(("", "LlamaModel", "llama"))
    plan = comes_back(tmp_path, layout, rules, strict=False)
    assert plan.report.unexpected == ("lm_head.weight",)
    assert not plan.ok(strict=True)


def test_legacy_names_in_one_layer_stay_in_one_layer(tmp_path: Path) -> None:
    norm = "bert.encoder.layer.{}.output.LayerNorm"
    layout = Layout().renamed(
        {f"{norm.format(0)}.gamma": f"{norm.format(0)}.weight", f"{norm.format(0)}.beta": f"{norm.format(0)}.bias"},
        shape=[4],
    )
    layout.same(
        [
            *(f"{norm.format(number)}.{end}" for number in (1, 2) for end in ("weight", "bias")),
            "bert.embeddings.LayerNorm.weight",
            "cls.predictions.bias",
        ],
        shape=[4],
    )
    rules = model_rules(("", "BertForMaskedLM", "bert"), ("bert", "BertModel", "bert"), base="bert")
    comes_back(tmp_path, layout, rules)
