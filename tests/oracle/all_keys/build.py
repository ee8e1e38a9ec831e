"""A job's model: tiny, with random values in every parameter and buffer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.oracle.all_keys.built import BUILT
from tests.oracle.all_keys.changes import CHANGES, VARIANTS
from tests.oracle.all_keys.classes import Pick, class_named, config_class, pick
from tests.oracle.all_keys.jobs import DEAD, Job
from tests.oracle.all_keys.shrink import tiny_config

if TYPE_CHECKING:
    from transformers import PreTrainedModel

MOST_PARAMETERS = 6_000_000


class NotBuilt(Exception):
    """No tiny model of this job can be had; the text says why."""


class NoSuchModel(Exception):
    """The key names no model of the reference implementation; the text says why."""


@dataclass(frozen=True, slots=True)
class Built:
    """A model and what loads its files; `main` is the model beside which it stands, if it does not stand alone."""

    model: PreTrainedModel
    model_class: Any
    config_class: Any
    main: Any = None


def build(job: Job) -> Built:
    """Build a job's model; raises NotBuilt where there is none, or it cannot be made small."""
    chosen = _pick(job.key)
    model_class = class_named(chosen.class_name)
    config_type = config_class(*chosen.config) if chosen.config else model_class.config_class
    config = _config(job, model_class.__name__, config_type)
    _check_size(model_class, config)
    return Built(filled(model_class(config).eval()), model_class, config_type)


def _pick(key: str) -> Pick:
    if key in DEAD:
        raise NoSuchModel(DEAD[key])
    chosen = pick(key)
    if chosen is None:
        raise NotBuilt("no model class has this name or model type")
    return chosen


def _config(job: Job, class_name: str, config_type: Any) -> Any:
    names = (class_name, job.key, config_type.__name__, getattr(config_type, "model_type", ""))
    if job.variant:
        return tiny_config(config_type, VARIANTS[job.key][job.variant])
    for name in names:
        if name in BUILT:
            return BUILT[name](class_name)
        if name in CHANGES:
            return tiny_config(config_type, CHANGES[name])
    return tiny_config(config_type, {})


def _check_size(model_class: Any, config: Any) -> None:
    import torch

    with torch.device("meta"):
        try:
            count = sum(parameter.numel() for parameter in model_class(config).parameters())
        except Exception:  # some classes work with values while they are built
            return
    if count > MOST_PARAMETERS:
        raise NotBuilt(f"it has {count} parameters even when made small")


def filled(model: PreTrainedModel) -> PreTrainedModel:
    """Give each tensor values of its own, once where several names share one."""
    import torch

    generator = torch.Generator().manual_seed(1234)
    tensors: Mapping[int, torch.Tensor] = {
        tensor.data_ptr() if tensor.numel() else id(tensor): tensor
        for _, tensor in reversed([*model.named_parameters(), *model.named_buffers()])
    }
    with torch.no_grad():
        for tensor in tensors.values():
            if tensor.is_floating_point():
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.5)
    return model
