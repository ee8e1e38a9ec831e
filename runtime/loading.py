"""load: a path to a running model. Open, prepare, read, bind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import RuleSet
from weightloom.engine.cast import with_dtype
from weightloom.plugins.binding import bind
from weightloom.plugins.manager import PluginManager
from weightloom.runtime.dtype_names import safetensors_dtype
from weightloom.runtime.embedding import read_settings
from weightloom.runtime.model import LoadedModel
from weightloom.runtime.opening import open_path
from weightloom.runtime.prepare import prepare
from weightloom.runtime.widening import widened

if TYPE_CHECKING:
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
    opened = open_path(path)
    found = prepare(opened, rules=rules, architecture=architecture, manager=manager)
    found.plan.check(strict)
    plan = found.plan if dtype is None else with_dtype(found.plan, safetensors_dtype(dtype))
    stored = plan.params
    plan = widened(plan)
    bind(found.module, plan.load(sharding, progress=progress, strict=strict))
    found.module.eval()
    return LoadedModel(
        model=found.module,
        config=opened.need_config().values,
        architecture=found.architecture,
        plan=plan,
        path=opened.path,
        side_files=opened.side_files,
        stored=stored,
        layout=found.layout,
        tokenizer=opened.tokenizer(),
        embed_settings=read_settings(opened.folder),
    )
