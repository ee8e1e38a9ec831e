"""All families that come with the package; `python -m tests.oracle.families` compares them."""

from tests.families import (
    dense_a,
    dense_b,
    encoders,
    experts_a,
    experts_b,
    gemmas,
    headless,
    llamas,
    recurrent,
    state_space,
)
from tests.families.family import Family

FAMILIES: tuple[Family, ...] = (
    *dense_a.FAMILIES,
    *dense_b.FAMILIES,
    *encoders.FAMILIES,
    *experts_a.FAMILIES,
    *experts_b.FAMILIES,
    *gemmas.FAMILIES,
    *headless.FAMILIES,
    *llamas.FAMILIES,
    *recurrent.FAMILIES,
    *state_space.FAMILIES,
)

# The kit runs on the first cases of these in every run, one for each kind of layer and block; on all in `make laws`.
# With the references all are compared, by `make oracle` and its sample.
GENERATING = [
    "llama",
    "qwen2",
    "phi3",
    "phi",
    "stablelm",
    "gpt2",
    "gpt_neox",
    "glm4",
    "exaone4",
    "hunyuan_v1_dense",
    "olmo2",
    "granite",
    "nemotron",
    "internlm2",
    "baichuan",
    "nemotron-nas",
    "minicpm3",
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "gpt_oss",
    "minimax",
    "llama4_text",
    "bailing_moe",
    "deepseek_v3",
    "deepseek_v32",
    "gemma2",
    "gemma3n_text",
    "gemma4_text",
    "cohere2",
    "lfm2",
    "qwen3_next",
    "recurrent_gemma",
    "rwkv7",
    "kimi_linear",
    "mamba",
    "mamba2",
    "jamba",
    "falcon_h1",
    "nemotron_h",
]
EVERY_RUN = {
    *((name, "generate") for name in GENERATING),
    *((name, "embed") for name in ("bert", "modernbert", "gemma3_text")),
    *((name, "rerank") for name in ("bert", "xlm-roberta", "qwen3")),
}


def in_every_run(family: Family) -> bool:
    """Say whether the kit runs on a family's first cases in every run."""
    return (family.model_type, family.task) in EVERY_RUN
