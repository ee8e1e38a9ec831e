"""Families with states, convolutions, towers, or norms of another scale."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family

_TOWERS = (r"^model\.(?!language_model\.)",)
_FOUR = {"text_config": {"num_hidden_layers": 4}}
_SIX = {"text_config": {"num_hidden_layers": 6}}
_SECTIONS = {
    "text_config": {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}
}

HYBRID: tuple[Family, ...] = (
    Family("mamba"),
    Family("falcon_mamba"),
    Family("mamba2", changes={"num_heads": 8, "head_dim": 8, "n_groups": 1, "state_size": 8}),
    Family("recurrent_gemma", changes={"num_key_value_heads": 1, "hidden_size": 64, "lru_width": 64}),
    Family("jamba", agrees=None, why="mlx-lm scales the chosen experts to a sum of one"),
    Family("nemotron_h", changes={"n_groups": 2}),
    Family("granitemoehybrid"),
    Family("qwen3_next"),
    Family("qwen3_5", changes=_FOUR, destroyed=_TOWERS),
    Family("qwen3_5_moe", changes=_FOUR, destroyed=_TOWERS),
    Family(
        "olmo_hybrid",
        named=(
            (r"\.attention_layer_norm\.", ".input_layernorm."),
            (r"\.feedforward_layer_norm\.", ".post_attention_layernorm."),
        ),
    ),
    Family("falcon_h1"),
    Family("lfm2", changes={"layer_types": ["conv", "full_attention"]}),
    Family("gemma3", changes=_SIX, destroyed=_TOWERS),
    Family("gemma4", destroyed=_TOWERS),
    Family("gemma4_text"),
    Family("gemma4_unified", destroyed=_TOWERS),
    Family("mistral3", destroyed=_TOWERS),
    Family("mistral4", changes={"num_key_value_heads": 4}),
    Family("llava", destroyed=_TOWERS),
    Family("qwen2_vl", changes=_SECTIONS, destroyed=_TOWERS),
    Family("qwen2_5_vl", changes=_SECTIONS, destroyed=_TOWERS),
    Family("qwen3_vl", changes=_SECTIONS, destroyed=_TOWERS),
    Family("muse_glimmer", named=((r"^model\.(vision_)", r"\1"),), destroyed=_TOWERS),
)
