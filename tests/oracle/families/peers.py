"""References: a family's tiny random checkpoint, and the answers to tokens, by an implementation that is not ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tests.families.family import Case, Family

Array = np.ndarray[Any, Any]


def write(family: Family, case: Case, folder: Path) -> None:
    """Write a random checkpoint in float32, as the reference implementation writes it."""
    if family.peer == "mlx_lm":
        from tests.oracle.families import mlx_peer

        return mlx_peer.write(family.config(case), folder, family.spread)
    import torch

    model = _model(family, case)
    generator = torch.Generator().manual_seed(11)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * family.spread)
            if parameter.ndim == 1 and name.endswith("norm.weight"):
                parameter.add_(1)
        # Such as biases of routers: values of their own, where a start at 0 would hide them.
        for name, buffer in model.named_buffers():
            free = name in model.state_dict() and not name.endswith(family.computed)
            if free and buffer.is_floating_point():
                buffer.copy_(torch.randn(buffer.shape, generator=generator) * family.spread)
    model.save_pretrained(folder)
    if family.relaid:
        from tests.oracle.families.relaying import relay

        relay(family, case, folder)
    return None


def answers(family: Family, folder: Path, tokens: Array) -> Array:
    """Give logits, hidden states or scores (2, ...) for tokens (2, L), by what `folder` holds."""
    if family.peer == "mlx_lm":
        from tests.oracle.families import mlx_peer

        return mlx_peer.answers(folder, tokens)
    import torch

    model = _relaid(family, folder) if family.relaid else _loaded(family, folder)
    with torch.no_grad():
        made = model(torch.tensor(tokens.astype(np.int64)))
    found = made.last_hidden_state if family.task == "embed" else made.logits
    return np.asarray(found.float().numpy())


def config_of(folder: Path) -> dict[str, Any]:
    """Give config.json as it lies there."""
    content: dict[str, Any] = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return content


def as_published(family: Family, config: Mapping[str, Any]) -> dict[str, Any]:
    """Give the same config as Transformers 4 wrote it: rotary settings at the top, fields by their older names.

    Of rotary settings by layer type that it had no words for, the names alone are older ones.
    """
    old = {name: value for name, value in config.items() if name != "rope_parameters"}
    rope = dict(config.get("rope_parameters") or {})
    if _is_newer(rope):
        return {family.older.get(name, name): value for name, value in config.items()}
    if any(isinstance(value, dict) for value in rope.values()):
        local, rope = dict(rope.get("sliding_attention") or {}), dict(rope.get("full_attention") or {})
        if "rope_theta" in local:
            old["rope_local_base_freq"] = local["rope_theta"]
    for name in ("rope_theta", "partial_rotary_factor"):
        if name in rope:
            old[family.older.get(name, name)] = rope.pop(name)
    if config.get("rope_parameters") is not None:
        old["rope_scaling"] = None if rope.get("rope_type") == "default" else rope
    if "dtype" in old:
        old["torch_dtype"] = old.pop("dtype")
    renamed = {family.older.get(name, name): value for name, value in old.items()}
    return {**renamed, "transformers_version": "4.50.0"}


def _is_newer(rope: dict[str, Any]) -> bool:
    return any(isinstance(value, dict) and value.get("rope_type") == "proportional" for value in rope.values())


def _class(family: Family) -> Any:
    import transformers

    return getattr(transformers, family.relaid or family.class_name)


def _loaded(family: Family, folder: Path) -> Any:
    import torch

    config = _config_class(family).from_pretrained(folder)
    config._attn_implementation = "eager"
    return _class(family).from_pretrained(folder, config=config, dtype=torch.float32).eval()


def _relaid(family: Family, folder: Path) -> Any:
    """Make the reference of a published checkpoint."""
    import torch

    from tests.oracle.families.relaying import config_for_reference, state_for_reference

    config = config_of(folder)
    model = _built(family, config_for_reference(config))
    state = {name: torch.from_numpy(array) for name, array in state_for_reference(folder, config).items()}
    lacking, unknown = model.load_state_dict(state, strict=False)
    assert not unknown and set(lacking) <= {"lm_head.weight"}, (lacking, unknown)
    model.tie_weights()
    return model


def _config_class(family: Family) -> Any:
    """Give the class of the configs: of some model types the model is of another's class."""
    from transformers import AutoConfig

    return _class(family).config_class if family.relaid else type(AutoConfig.for_model(family.model_type))


def _model(family: Family, case: Case) -> Any:
    from tests.oracle.families.relaying import config_for_reference

    content = family.config(case)
    return _built(family, config_for_reference(content) if family.relaid else content)


def _built(family: Family, content: dict[str, Any]) -> Any:
    import torch

    model_class = _class(family)
    torch.manual_seed(0)
    config = _config_class(family)(**{name: value for name, value in content.items() if name != "model_type"})
    config._attn_implementation = "eager"
    return model_class(config).float().eval()
