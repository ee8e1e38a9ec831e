"""open_gguf: a GGUF model as a Checkpoint of tensors that MLX can use; read_gguf: its headers alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from weightloom.engine.checkpoints.checkpoint import Checkpoint
from weightloom.engine.checkpoints.contents import collect, merged_metadata
from weightloom.engine.checkpoints.file_source import FileSource
from weightloom.engine.checkpoints.header import build_header, parse_header
from weightloom.engine.checkpoints.shard import Shard
from weightloom.engine.errors import CheckpointError
from weightloom.engine.gguf.fields import Value
from weightloom.engine.gguf.header import GgufHeader, GgufTensor, read_header
from weightloom.engine.gguf.parts import find_parts
from weightloom.engine.gguf.tensors import Made, translate
from weightloom.engine.gguf.translated import TranslatedSource
from weightloom.engine.show import shown


@dataclass(frozen=True, slots=True)
class Gguf:
    """What the headers of a GGUF model say: its files, all keys with their values, and its tensors by name."""

    files: tuple[Path, ...]
    metadata: Mapping[str, Value] = field(repr=False)
    tensors: Mapping[str, GgufTensor] = field(repr=False)


def read_gguf(path: str | Path) -> Gguf:
    """Read the headers of a GGUF file, of all parts of a split one, or of the only model in a directory.

    Raises CheckpointError for files that are missing, damaged or do not belong together, StorageError where the
    system refuses.
    """
    files = find_parts(Path(path))
    with ExitStack() as stack:
        headers = [header for _, header in _opened(files, stack)]
    tensors: dict[str, GgufTensor] = {}
    for file, header in zip(files, headers, strict=True):
        for tensor in header.tensors:
            if tensor.name in tensors:
                raise _twice(tensor.name, file)
            tensors[tensor.name] = tensor
    return Gguf(files, headers[0].metadata, MappingProxyType(tensors))


def open_gguf(path: str | Path) -> Checkpoint:
    """Open a GGUF model; its bytes are translated as they are read, by blocks.

    Blocks of Q4_0, Q4_1, Q5_0, Q5_1 and Q8_0 become MLX's affine form with groups of 32: `NAME.weight` packed as U32,
    `NAME.scales` and `NAME.biases` as F16, or F32 where a bias is too large for F16. That is the one thing that headers
    do not tell, so the scales of Q4_0, Q5_0 and Q8_0 are looked through here. Those of Q4_K and Q5_K are products that
    F16 does not hold, so they are F32. MXFP4 is MLX's own: words, and scales as U8. Other block types become F32,
    plain types stay.
    Values equal those of the `gguf` package wherever the scale is finite; of zeros the sign may differ.
    Metadata: the texts under `general.`, and `format`: gguf.

    Raises as `read_gguf` does; reading a tensor also raises MissingExtra where its type needs the `gguf` package.
    """
    with ExitStack() as stack:
        shards = tuple([_shard(*each) for each in _opened(find_parts(Path(path)), stack)])
        contents = collect(shards, None)
        stack.pop_all()
    return Checkpoint(
        shards,
        contents.tensors,
        MappingProxyType(contents.logical),
        MappingProxyType(merged_metadata(shards)),
        notes=contents.notes,
        _places=contents.places,
    )


def _opened(files: tuple[Path, ...], stack: ExitStack) -> list[tuple[FileSource, GgufHeader]]:
    found = []
    for number, file in enumerate(files):
        source = FileSource(file)
        stack.callback(source.close)
        header = read_header(source)
        _check_part(header.metadata, number, len(files), file)
        found.append((source, header))
    total = sum(len(header.tensors) for _, header in found)
    for file, (_, header) in zip(files, found, strict=True):
        stated = header.metadata.get("split.tensors.count", total)
        if len(files) > 1 and stated != total:
            raise _not_together(file, f"split.tensors.count is {shown(stated)}", f"{total}, as there are in all parts")
    return found


def _check_part(metadata: Mapping[str, Value], number: int, count: int, file: Path) -> None:
    stated = metadata.get("split.count", 0)
    if stated not in (count, 0) or (count > 1 and stated == 0):
        raise _not_together(file, f"split.count is {shown(stated)} and there are {count} files", "the same number")
    if stated and metadata.get("split.no") != number:
        raise _not_together(file, f"split.no is {shown(metadata.get('split.no'))}", str(number))


def _shard(source: FileSource, header: GgufHeader) -> Shard:
    """Present a file as a safetensors file in which each tensor is what it is translated to."""
    made: list[Made] = [each for tensor in header.tensors for each in translate(tensor, source)]
    for name, count in Counter(each.name for each in made).items():
        if count > 1:
            raise _twice(name, Path(source.name))
    raw = build_header([(each.name, each.spec) for each in made], _texts(header.metadata))
    head = len(raw).to_bytes(8, "little") + raw
    translated = TranslatedSource(head, [each.piece for each in made], source)
    return Shard(None, parse_header(raw, translated.size - len(head), file=source.name), translated)


def _texts(metadata: Mapping[str, Value]) -> dict[str, str]:
    texts = {key: value for key, value in metadata.items() if key.startswith("general.") and isinstance(value, str)}
    return {**texts, "format": "gguf"}


def _twice(name: str, file: Path) -> CheckpointError:
    return CheckpointError(
        f"tensor {shown(name)} is there twice",
        expected="each tensor once, the scales and biases of quantized ones included",
        hint="get the model again, or from another place",
        file=file,
        tensor=name,
    )


def _not_together(file: Path, seen: str, expected: str) -> CheckpointError:
    hint = "files of two models may be mixed, or a part is renamed: get all parts again, under their own names"
    return CheckpointError(seen, expected=expected, hint=hint, file=file, field="split.count")
