"""The reference implementation as a peer: its module tree, its parameters, its files, its loading."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden.make import file_bytes, index_bytes
from tests.golden.reference import Tensor
from tests.oracle.models import CASES, Case, model_of
from weightloom.engine import Checkpoint, ModuleNode, Plan, Rule, RuleSet, TensorSpec, build_plan, scoped_rules

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

Held = dict[str, tuple[Tensor, bytes]]

_DTYPES = {"torch.float32": "F32", "torch.bfloat16": "BF16", "torch.int64": "I64"}


def spec_of(tensor: torch.Tensor) -> Tensor:
    """Dtype and shape in safetensors' terms."""
    return Tensor(_DTYPES[str(tensor.dtype)], tuple(tensor.shape))


def bytes_of(tensor: torch.Tensor) -> bytes:
    """The tensor's data, row-major."""
    import torch

    return bytes(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())


def nodes_of(model: PreTrainedModel) -> tuple[ModuleNode, ...]:
    """The module tree: each sub-model with its path, depth first."""
    from transformers import PreTrainedModel

    return tuple(
        ModuleNode(path, type(module).__name__, module.config.model_type)
        for path, module in model.named_modules()
        if isinstance(module, PreTrainedModel)
    )


def param_specs(model: PreTrainedModel) -> dict[str, TensorSpec]:
    """Every persistent parameter and buffer, both ends of a tie, with the dtype left to the file."""
    return {name: TensorSpec(None, tuple(tensor.shape)) for name, tensor in model.state_dict().items()}


def rules_of(model: PreTrainedModel) -> RuleSet:
    """The rules that ship, scoped to a model's tree."""
    from weightloom.rules import registry

    return scoped_rules(nodes_of(model), registry, model.base_model_prefix)


def config_of(directory: Path) -> dict[str, Any]:
    """The config.json that lies beside the weights."""
    found: dict[str, Any] = json.loads((directory / "config.json").read_text())
    return found


def save(name: str, dtype: str, sharded: bool, directory: Path) -> Path:
    """Let the reference implementation write a case's model, then put it into the published form if it has one."""
    save_pretrained(name, dtype, sharded, directory)
    if CASES[name].published is not None:
        _republish(CASES[name], directory)
    return directory


def save_pretrained(name: str, dtype: str, sharded: bool, directory: Path) -> None:
    """Let the reference implementation write a case's model, in one file or some three."""
    model = model_of(name, dtype)
    whole = sum(tensor.numel() * tensor.element_size() for tensor in model.state_dict().values())
    with quiet():
        model.save_pretrained(directory, max_shard_size=whole // 3 if sharded else whole)


def read_files(directory: Path) -> dict[str, Held]:
    """Every weight file's tensors, in the order of their data, read by hand."""
    return {path.name: _read_file(path) for path in sorted(directory.glob("*.safetensors"))}


def _read_file(path: Path) -> Held:
    content = path.read_bytes()
    start = 8 + int.from_bytes(content[:8], "little")
    entries = json.loads(content[8:start])
    entries.pop("__metadata__", None)
    found: Held = {}
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        found[name] = Tensor(entry["dtype"], tuple(entry["shape"])), content[start + first : start + last]
    return found


def published_files(case: Case, files: Mapping[str, Mapping[str, Tensor]]) -> dict[str, dict[str, Tensor]]:
    """The same files with published names, and what the published ones hold besides in the last of them."""
    if case.published is None:
        return {file: dict(tensors) for file, tensors in files.items()}
    known = {name: tensor for tensors in files.values() for name, tensor in tensors.items()}
    found = {file: {case.published(n): t for n, t in tensors.items()} for file, tensors in files.items()}
    for name, source in case.more:
        twin = known.get(source)
        extra = Tensor("I64", (1, 32)) if twin is None else Tensor(twin.dtype, twin.shape, copy_of=source)
        found[max(found)][name] = extra
    return found


def _republish(case: Case, directory: Path) -> None:
    files = read_files(directory)
    data = {case.published(name): data for held in files.values() for name, (_, data) in held.items()}  # type: ignore[misc]
    specs = {file: {name: tensor for name, (tensor, _) in held.items()} for file, held in files.items()}
    renamed = published_files(case, specs)
    for name, source in case.more:
        data[name] = data[source] if source else b"".join(i.to_bytes(8, "little") for i in range(32))
    for file, tensors in renamed.items():
        (directory / file).write_bytes(file_bytes(tensors, data))
    if len(renamed) > 1:
        (directory / "model.safetensors.index.json").write_bytes(index_bytes(renamed))


def load(name: str, directory: Path) -> tuple[PreTrainedModel, dict[str, Any]]:
    """Load a directory as a case's class, with the dtype of its files; gives (model, what it says of the load)."""
    import transformers

    with quiet():
        model, info = getattr(transformers, CASES[name].class_name).from_pretrained(
            directory, output_loading_info=True, local_files_only=True, dtype="auto"
        )
    return model, info


def misfits(info: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a load left over, missed or could not use."""
    kinds = ("missing_keys", "unexpected_keys", "mismatched_keys", "error_msgs", "conversion_errors")
    return {kind: sorted(map(str, info[kind])) for kind in kinds if info.get(kind)}


def mapping_of(model: PreTrainedModel) -> list[Any]:
    """The transforms that the reference implementation uses for a model, legacy names among them."""
    from transformers.conversion_mapping import get_model_conversion_mapping

    return list(get_model_conversion_mapping(model))


def shared_kinds(rules: RuleSet) -> list[Rule]:
    """The rules of kinds that the reference implementation has too, in order."""
    return [rule for rule in rules if rule.kind not in ("drop", "tie", "keep_dtype")]


@contextmanager
def quiet() -> Iterator[None]:
    """Silence the progress bars and reports of the reference implementation."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(before)


def tensors_in(directory: Path) -> Held:
    """All tensors of a directory, of whatever file."""
    return {name: held for tensors in read_files(directory).values() for name, held in tensors.items()}


def converted_tensors(name: str, dtype: str) -> Held:
    """A case's parameters under their own names, as an already converted file has them."""
    return {key: (spec_of(tensor), bytes_of(tensor)) for key, tensor in model_of(name, dtype).state_dict().items()}


def write(tensors: Held, directory: Path, config: Mapping[str, Any]) -> Path:
    """Write one file of tensors beside a config."""
    directory.mkdir()
    specs, data = {n: spec for n, (spec, _) in tensors.items()}, {n: raw for n, (_, raw) in tensors.items()}
    (directory / "model.safetensors").write_bytes(file_bytes(specs, data))
    (directory / "config.json").write_text(json.dumps(config))
    return directory


def plan_for(name: str, dtype: str, directory: Path) -> Plan:
    """Our plan, by the rules that ship, for a case's parameters from the files of a directory."""
    model = model_of(name, dtype)
    return build_plan(Checkpoint.open(directory), rules_of(model), param_specs(model), config=config_of(directory))
