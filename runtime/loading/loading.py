"""load: a path to a running model. Open, prepare, read, bind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from weightloom.engine import LoadReport, Plan, TensorSpec
from weightloom.engine.checkpoints.discovery import KEPT_NAME
from weightloom.engine.errors import UsageError
from weightloom.engine.planning.grouping import grouped_names
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.runtime.adapting.adapters import ReadAdapter, put_adapters, read_adapters
from weightloom.runtime.adapting.fused_model import fused_model
from weightloom.runtime.adapting.wish import AdapterWish, Fusing, Weighted, Wished, wished
from weightloom.runtime.choosing.decision import Asked
from weightloom.runtime.choosing.rule_choice import CallerRules
from weightloom.runtime.configs.config import NAME as CONFIG_NAME
from weightloom.runtime.configs.dtype_field import with_dtype_field
from weightloom.runtime.loading.fused_products import fuse_products
from weightloom.runtime.loading.materializing import Mode, asked_mode, fill, refuse_with_lazy
from weightloom.runtime.loading.ranks import Part, Share, Way, bytes_read, parted, take_part
from weightloom.runtime.loading.widening import widened
from weightloom.runtime.model import LoadedModel
from weightloom.runtime.opening.foreign_code import ignored_code
from weightloom.runtime.opening.opening import Opened, open_path
from weightloom.runtime.preparing.casting import asked_dtype
from weightloom.runtime.preparing.prepare import Prepared, prepare
from weightloom.runtime.quantizing.quantized_model import as_asked, scales_checked, unpacked
from weightloom.runtime.quantizing.wish import Quantizing, asked_quantizing, form_for
from weightloom.runtime.surgery.surgery import asked_surgery, operated
from weightloom.runtime.surgery.surgery_file import SurgeryFile
from weightloom.runtime.surgery.surgery_module import rebuilt, with_config
from weightloom.runtime.tokenizing.vocabulary_fit import beyond_vocabulary

if TYPE_CHECKING:
    from weightloom.engine.plan import Progress
    from weightloom.engine.planning.sharding import Sharding


def load(
    path: str | Path,
    dtype: str | None = None,
    lazy: bool | None = None,
    adapter: Wished | Fusing | None = None,
    surgery: object = None,
    rules: CallerRules | None = None,
    strict: bool = True,
    sharding: Sharding | Way | None = None,
    quantize: object = None,
    text_only: bool | None = None,
    architecture: str | None = None,
    progress: Progress | None = None,
    manager: PluginManager | None = None,
    task: str | None = None,
    fuse: bool | None = None,
) -> LoadedModel:
    """Load a model from a directory, a safetensors file or index, or a GGUF file.

    In one of several processes (mlx.launch), `sharding` gives each its part: "tensor" cuts parameters as the
    architecture says, "pipeline" gives each rank some of the layers, a Sharding cuts as it says. `dtype` ("bfloat16",
    "float16", "float32", or MLX's own) casts float parameters as `casting` decides ("auto": as the device is); by
    default all stay as they are. `rules` act before those of the architecture. `architecture` settles which plugin
    where several offer the model type, `task` what the model is to do where the files say another. With
    `lazy` a parameter is read when it is first used, with lazy=False all are read at once; else the variable
    WEIGHTLOOM_MATERIALIZE (lazy, eager) says which, and without it all are but those of towers, which a text prompt
    does not run. Files stay open; one that was written to in place raises CheckpointError at the use. `text_only` loads
    the text model of a checkpoint with towers (False: the whole, or nothing); what is left out is reported, and saved
    back. `surgery` names a surgery file, by default the one that WEIGHTLOOM_SURGERY names; it acts after conversion and
    before a cast. `adapter` is the directory of an adapter of PEFT or mlx-lm, or several with a scale each, which stay
    beside the parameters; `adapters` switches them. `quantize` packs modules as they are read, by a recipe ("4bit",
    ..., a path, a Recipe); "dense" unpacks what the files hold packed. `fuse` computes products on one input as one
    by default on a GPU. Raises PluginError, ConfigError, PlanError, CheckpointError, StorageError.
    """
    mode = asked_mode(lazy)
    refuse_with_lazy(mode, sharding is not None, bool(fuse))
    wish, wanted, quantizing = wished(adapter), asked_dtype(dtype), asked_quantizing(quantize)
    manager = manager or PluginManager()
    asked = _asked(surgery, bool(wish.beside))
    opened = open_path(path)
    try:
        decided, form = Asked(architecture, task, text_only), form_for(quantizing)
        found = prepare(opened, rules=rules, asked=decided, manager=manager, form=form)
        found.plan.check(strict)
        opened, found, changed = _changed(opened, unpacked(found, quantizing), wish, asked)
        found, cast = as_asked(found, wanted, quantizing)
        adapters, part = _part(wish.beside, found, opened.need_config().values, sharding)
        stored = found.plan if part is None else part.plan
        plan = widened(scales_checked(stored, found.quantized.modules))
        share = _filled(found, plan, part, mode, progress, strict)
        about = (*(note for each in adapters for note in each.notes), *(part.notes if part else ()))
        remarks = (*manager.notes, *changed, *cast.notes, *about)
        m = _loaded(opened, found, plan, stored.params, cast.dtype, remarks, share)
        m = replace(_packed(m, found, quantizing, bool(wish.fused)), fused=wish.fused)
        m = replace(m, surgery=asked.path if asked else None, adapters=put_adapters(found.module, adapters))
        fuse_products(found.module, fuse, mode, found.architecture.towers, alone=not (adapters or part))
        return m
    except BaseException:
        opened.checkpoint.close()
        raise


def _filled(
    found: Prepared, plan: Plan, part: Part | None, mode: Mode, progress: Progress | None, strict: bool
) -> Share | None:
    """Read a plan's parameters into the module, or have them read later; give what this rank then holds."""
    before = bytes_read()
    read = partial(Plan.load, sharding=part.sharding if part else None, progress=progress, strict=strict)
    fill(found.module, plan, mode, () if part else found.architecture.towers, read, strict)
    return None if part is None else part.share(found.module, widened(found.plan).nbytes, before)


def _packed(m: LoadedModel, found: Prepared, quantizing: Quantizing | None, fused: bool) -> LoadedModel:
    """Say which modules are packed otherwise than in the files, and which are as a vendor packed them."""
    same, vendor = quantizing is None and not fused, quantizing is None and found.vendor is not None
    modules = found.quantized.modules
    return replace(m, packed=None if same else modules, vendor=modules if vendor else None)


def _part(
    pairs: Sequence[Weighted], found: Prepared, config: Mapping[str, object], sharding: Sharding | Way | None
) -> tuple[tuple[ReadAdapter, ...], Part | None]:
    """Hold adapters against the whole model, then cut both to this rank's part, where there are several."""
    half = found.half
    own, before = (config, None) if half is None else (half.config, half.renames)
    adapters = read_adapters(pairs, found.architecture, found.module, own, before)
    if sharding is None:
        return adapters, None
    part = take_part(found, sharding)
    return parted(adapters, found.module, part), part


def _asked(surgery: object, with_adapters: bool) -> SurgeryFile | None:
    """Read the surgery file; refused beside adapters, for it would act on what they are added to alone."""
    asked = asked_surgery(surgery)
    if asked is not None and with_adapters:
        raise UsageError(
            "adapters and surgery were both given",
            expected="one of them, for adapters stay beside the parameters",
            hint="fuse them (adapter=Fusing(...), generate --fuse), or convert with --adapter and --surgery",
            file=asked.path,
            field="surgery",
        )
    return asked


def _changed(
    opened: Opened, found: Prepared, wish: AdapterWish, surgery: SurgeryFile | None
) -> tuple[Opened, Prepared, tuple[str, ...]]:
    """Fuse adapters, then do surgery, and give notes that say so; what was pruned has another config and module."""
    found, fused = fused_model(found, wish, opened.need_config().values)
    if surgery is None:
        return opened, found, fused
    config = found.config if found.half is None else opened.need_config().values
    done = operated(found.plan, surgery, found.architecture.base_model_prefix, config)
    notes = (*fused, f"surgery by {surgery.path} changes {len(done.changes)} tensors")
    if not surgery.prunings:
        return opened, replace(found, plan=done.plan), notes
    return with_config(opened, done.config), rebuilt(found, done), notes


def _loaded(
    opened: Opened,
    found: Prepared,
    plan: Plan,
    stored: Mapping[str, TensorSpec],
    cast: str | None,
    remarks: Sequence[str],
    share: Share | None,
) -> LoadedModel:
    config, tokenizer = opened.need_config(), opened.tokenizer()
    text = () if tokenizer is None else (*tokenizer.notes, *beyond_vocabulary(tokenizer.backend, config.values))
    lacking = _forgiven(plan.report)
    code = ignored_code(opened.folder, config.values)
    half = (found.half.note,) if found.half is not None else ()
    notes = (*half, *plan.report.repaired, *lacking, *found.quantized.notes, *code, *text)
    return LoadedModel(
        model=found.module,
        config=config.values if found.half is not None else found.config,
        architecture=found.architecture,
        plan=plan,
        path=opened.path,
        folder=opened.folder,
        side_files=opened.side_files if cast is None else partial(_cast_side_files, opened, cast),
        stored=stored,
        opened=opened,
        layout=found.layout,
        tokenizer=tokenizer,
        notes=(*notes, *remarks),
        share=share,
        cast=cast,
        half=found.half,
        decision=found.decision,
    )


def _forgiven(report: LoadReport) -> Iterator[str]:
    """Say what a lenient load went without, and what it left out."""
    yield from (f"{name} is not in the checkpoint, and as the module made it" for name in report.missing)
    if report.unexpected:
        names = ", ".join(grouped_names(report.unexpected))
        yield f"{len(report.unexpected)} tensors lead to no parameter, and are left out: {names}"


def _cast_side_files(opened: Opened, cast: str) -> Mapping[str, bytes | Path]:
    """Give the side files of a model that was cast: its config names the new dtype, and nothing is kept."""
    files = {name: content for name, content in opened.side_files().items() if name != KEPT_NAME}
    return {**files, CONFIG_NAME: with_dtype_field((opened.beside or opened.need_config()).saved, cast)}
