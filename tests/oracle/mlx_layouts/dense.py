"""Families of plain decoders."""

from __future__ import annotations

from tests.oracle.mlx_layouts.family import Family

_PLAIN_LLAMA4 = {"moe_layers": [], "num_hidden_layers": 4, "no_rope_layers": [1, 1, 1, 1]}
_FOUR_LAYERS = {"num_hidden_layers": 4}

DENSE = (
    Family("apertus"),
    Family("cohere"),
    Family("cohere2", changes={"num_hidden_layers": 4, "sliding_window_pattern": 2}),
    Family("ernie4_5"),
    Family("exaone"),
    Family("exaone4", changes=_FOUR_LAYERS, reads={"sliding_window_pattern": "LLLG"}),
    Family("gemma", agrees=3e-2, why="mlx-lm takes the exact GELU"),
    Family("gemma2"),
    Family(
        "gemma3_text",
        changes={"num_hidden_layers": 4, "sliding_window_pattern": 2},
        agrees=1e-2,
        why="mlx-lm rounds the scale of embeddings to bfloat16",
    ),
    Family("glm", agrees=None, why="mlx-lm turns all of a head, GLM half of it"),
    Family("glm4"),
    Family("gpt2", named=((r"^transformer\.", ""),)),
    Family("gpt_bigcode"),
    Family("gpt_neox", changes={"intermediate_size": 128}),
    Family("gptj", changes={"rotary_dim": 4}),
    Family("granite"),
    Family("helium"),
    Family("hunyuan_v1_dense"),
    Family("internlm3"),
    Family("iquestcoder", class_name="LlamaForCausalLM", config=("iquestcoder", "IQuestCoderConfig")),
    Family("llama"),
    Family("llama4_text", changes={**_PLAIN_LLAMA4, "tie_word_embeddings": True}),
    Family("llama4_text", changes=_PLAIN_LLAMA4, variant="untied", reads_published=False),
    Family("mellum"),
    Family("minicpm3", changes={"num_key_value_heads": 4}),
    Family("ministral3"),
    Family("mistral"),
    Family("nanochat", reads_published=False),
    Family("nemotron", changes={"num_key_value_heads": 2}),
    Family(
        "olmo",
        changes={"num_key_value_heads": 4},
        reads_published=False,
        unused="hf_olmo",
        length=1,
        why="mlx-lm fails on longer prompts",
    ),
    Family("olmo2"),
    Family("olmo3", changes=_FOUR_LAYERS),
    Family("phi"),
    Family("phi3"),
    Family("qwen2"),
    Family("qwen3"),
    Family("seed_oss"),
    Family("smollm3", changes=_FOUR_LAYERS),
    Family("stablelm"),
    Family("starcoder2", agrees=1e-2, why="mlx-lm takes the exact GELU"),
)
