"""Adapters that PEFT makes and writes for tiny random models, with the logits of its merged models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.oracle.logits import SIZES, Array

LENGTH = 12
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "head_dim": 16}
# kind -> class, config's class, sizes beside the usual ones
MODELS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "llama": ("LlamaForCausalLM", "LlamaConfig", {}),
    "biased": ("LlamaForCausalLM", "LlamaConfig", {"attention_bias": True}),
    "tied": ("LlamaForCausalLM", "LlamaConfig", {"tie_word_embeddings": True}),
    "mixtral": ("MixtralForCausalLM", "MixtralConfig", {"num_local_experts": 4}),
    "square": ("MixtralForCausalLM", "MixtralConfig", {"num_local_experts": 4, "intermediate_size": 32}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", "Qwen3MoeConfig", EXPERTS),
    "bert": ("BertModel", "BertConfig", {}),
    "classifier": ("BertForSequenceClassification", "BertConfig", {"num_labels": 3}),
}
TASKS = {"bert": None, "classifier": "SEQ_CLS"}
MLP = ("gate_proj", "up_proj", "down_proj")
STACKS = ("mlp.experts.gate_up_proj", "mlp.experts.down_proj")


@dataclass(frozen=True)
class Case:
    """A model, and the fields of one adapter's LoraConfig or of several.

    `sample`: a quick one that stands for its kind.
    """

    name: str
    model: str
    adapters: Sequence[Mapping[str, Any]]
    sample: bool = False
    sizes: Mapping[str, Any] = field(default_factory=dict)


def one(name: str, model: str, *modules: str, sample: bool = False, **values: Any) -> Case:
    return Case(name, model, [{"r": 3, "lora_alpha": 6, "target_modules": list(modules), **values}], sample)


def stacks(name: str, model: str, *parameters: str, sample: bool = False, **values: Any) -> Case:
    return one(name, model, target_parameters=list(parameters), sample=sample, **values)


RANKS = {"v_proj": 2, r"layers\.1\.mlp\.gate_proj": 5}
ALPHAS = {"q_proj": 7, "layers.2.self_attn.o_proj": 1.5}
BERT = ("query", "value", "output.dense")
CASES = [
    one("rank 1", "llama", "q_proj", r=1),
    one("rank above the size", "llama", "q_proj", "v_proj", *MLP, r=40),
    one("rank_pattern", "llama", "v_proj", *MLP, rank_pattern=RANKS),
    one("alpha_pattern", "llama", "q_proj", "o_proj", alpha_pattern=ALPHAS),
    one("rslora, both patterns", "llama", "q_proj", "v_proj", "o_proj", *MLP, use_rslora=True, rank_pattern=RANKS,
        alpha_pattern=ALPHAS, sample=True),
    one("DoRA", "llama", "q_proj", "v_proj", *MLP, use_dora=True, sample=True),
    one("DoRA, biased layers, rslora", "biased", "q_proj", "o_proj", use_dora=True, use_rslora=True),
    one("DoRA of embeddings and head", "llama", "k_proj", "embed_tokens", "lm_head", use_dora=True, sample=True),
    one("DoRA of tied embeddings", "tied", "embed_tokens", "k_proj", use_dora=True),
    one("embeddings and head", "llama", "q_proj", "embed_tokens", "lm_head"),
    one("embeddings, tied", "tied", "embed_tokens", "k_proj"),
    one("saved modules", "llama", "q_proj", modules_to_save=["embed_tokens", "lm_head", "norm"], sample=True),
    one("bias lora_only", "biased", "q_proj", "o_proj", bias="lora_only"),
    one("bias all", "biased", "q_proj", bias="all"),
    one("experts by modules' names", "mixtral", "q_proj", "w1", "w2", "w3"),
    one("experts by modules' names, rslora", "mixtral", "w1", "w2", "w3", use_rslora=True),
    stacks("experts by target_parameters", "mixtral", *STACKS, sample=True),
    stacks("one stack of two", "mixtral", STACKS[1], r=2),
    stacks("square stacks, by version", "square", STACKS[1]),
    stacks("router", "mixtral", "mlp.gate.weight", *STACKS),
    stacks("stacks, rslora, both patterns", "qwen3_moe", *STACKS, use_rslora=True, rank_pattern={"gate_up_proj": 4},
           alpha_pattern={"experts.down_proj": 5}),
    one("experts by modules' names, DoRA of attention apart", "qwen3_moe", "q_proj", "o_proj", use_dora=True),
    one("encoder", "bert", *BERT, "word_embeddings", sample=True),
    one("encoder, DoRA", "bert", *BERT, "word_embeddings", use_dora=True),
    one("encoder, biases", "bert", "query", bias="all"),
    one("classifier, with its head", "classifier", *BERT),
    Case("two at once", "llama", [
        {"r": 2, "lora_alpha": 3, "target_modules": ["q_proj", "v_proj"]},
        {"r": 5, "lora_alpha": 4, "target_modules": ["q_proj", "down_proj"], "use_rslora": True},
    ]),
    Case("three at once, the first DoRA", "llama", [
        {"r": 2, "lora_alpha": 3, "target_modules": ["q_proj", "v_proj"], "use_dora": True},
        {"r": 5, "lora_alpha": 4, "target_modules": ["q_proj", "down_proj"]},
        {"r": 1, "lora_alpha": 4, "target_modules": ["down_proj", "o_proj"]},
    ], sample=True),
]  # fmt: skip


@dataclass(frozen=True)
class Made:
    """What PEFT made: the base and the adapters on disk, tokens, and the logits of base, running and merged model."""

    base: Path
    adapters: tuple[Path, ...]
    tokens: Array
    plain: Array
    running: Array
    merged: Array


def make(case: Case, folder: Path) -> Made:
    """Write a base and adapters of it."""
    import peft
    import torch
    import transformers

    class_name, config_name, sizes = MODELS[case.model]
    config = getattr(transformers, config_name)(**{**SIZES, **sizes, **case.sizes})
    model: Any = getattr(transformers, class_name)(config).float().eval()
    chance = torch.Generator().manual_seed(11)
    _fill(model.parameters(), chance)
    model.save_pretrained(folder / "base")
    model = getattr(transformers, class_name).from_pretrained(folder / "base", dtype=torch.float32).eval()
    tokens = np.random.default_rng(7).integers(0, SIZES["vocab_size"], (2, LENGTH))
    plain = _made(model, tokens)
    names = [f"adapter{n}" for n in range(len(case.adapters))]
    kind = TASKS.get(case.model, "CAUSAL_LM")
    for name, values in zip(names, case.adapters, strict=True):
        wanted = peft.LoraConfig(task_type=kind, **values)
        if isinstance(model, peft.PeftModel):
            model.add_adapter(name, wanted)
        else:
            model = peft.get_peft_model(model, wanted, adapter_name=name)
    model.base_model.set_adapter(names)
    _fill((p for p in model.parameters() if p.requires_grad), chance)
    model.save_pretrained(str(folder), selected_adapters=names)
    model = model.eval()
    running = _made(model, tokens)
    merged = model.merge_and_unload(adapter_names=names).eval()
    return Made(folder / "base", tuple(folder / name for name in names), tokens, plain, running, _made(merged, tokens))


def _fill(parameters: Any, chance: Any) -> None:
    import torch

    with torch.no_grad():
        for parameter in parameters:
            parameter.copy_(torch.randn(parameter.shape, generator=chance) / 3)


def _made(model: Any, tokens: Array) -> Array:
    """Give the logits, or an encoder's hidden states."""
    import torch

    with torch.no_grad():
        found = model(torch.tensor(tokens))
    made: Array = (found.logits if hasattr(found, "logits") else found.last_hidden_state).numpy()
    return made
