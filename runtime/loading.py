"""load: a path to a running model. Detect, choose, build the module, plan, read, bind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import RuleSet, build_plan
from weightloom.engine.cast import with_dtype
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.binding import bind, param_specs
from weightloom.plugins.manager import PluginManager
from weightloom.plugins.quantized import quantize
from weightloom.runtime.dtype_names import safetensors_dtype
from weightloom.runtime.embedding import read_settings
from weightloom.runtime.model import LoadedModel
from weightloom.runtime.model_source import Source, open_source
from weightloom.runtime.quantized_set import quantized_modules
from weightloom.runtime.rule_choice import model_rules, user_rules
from weightloom.runtime.widening import widened

if TYPE_CHECKING:
    import mlx.nn as nn

    from weightloom.engine.plan import Progress
    from weightloom.engine.sharding import Sharding


def load(
    path: str | Path,
    dtype: str | None = None,
    *,
    rules: RuleSet | str | Path | None = None,
    strict: bool = True,
    sharding: Sharding | None = None,
    architecture: str | None = None,
    progress: Progress | None = None,
    manager: PluginManager | None = None,
) -> LoadedModel:
    """Load a model from a directory, a safetensors file or index, or a GGUF file.

    `dtype` ("bfloat16", "float16", "float32") casts float parameters; by default all stay as they are in the
    file. `rules` act before those of the architecture. `architecture` settles which plugin where several offer
    the model type. Raises PluginError for a model type that no plugin serves, ConfigError for a config that
    cannot be, PlanError where the tensors do not fit, CheckpointError and StorageError as reading does.
    """
    source = open_source(Path(path))
    found = _choose(source, manager or PluginManager(), architecture)
    listed = user_rules(rules) + model_rules(found, source.config, source.layout)
    module = _module(found, source, listed)
    plan = build_plan(source.checkpoint, listed, param_specs(module), config=source.config)
    plan.check(strict)
    if dtype is not None:
        plan = with_dtype(plan, safetensors_dtype(dtype))
    stored = plan.params
    plan = widened(plan)
    arrays = plan.load(sharding, progress=progress, strict=strict)
    bind(module, arrays)
    module.eval()
    return LoadedModel(
        model=module,
        config=source.config,
        architecture=found,
        plan=plan,
        path=source.path,
        side_files=source.side_files,
        stored=stored,
        layout=source.layout,
        tokenizer=source.tokenizer(),
        embed_settings=read_settings(source.folder),
    )


def _choose(source: Source, manager: PluginManager, chosen: str | None) -> Architecture:
    model_type = source.config.get("model_type")
    if not isinstance(model_type, str) or not model_type:
        raise ConfigError(
            f"model_type is {model_type!r}",
            expected="the name of a model family",
            hint="complete config.json",
            file=source.path,
            field="model_type",
        )
    return manager.architecture(model_type, chosen)


def _module(found: Architecture, source: Source, rules: RuleSet) -> nn.Module:
    """Build the module that the config and the file's names ask for; no parameter is computed."""
    open_target = build_plan(source.checkpoint, rules, config=source.config)
    config = found.read_config(source.config)
    if found.adapt is not None:
        config = found.adapt(config, open_target.params.keys())
    module = found.build(config)
    quantize(module, quantized_modules(open_target.params, source.config))
    return module
