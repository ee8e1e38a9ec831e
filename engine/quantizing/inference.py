"""How a matrix is packed, from the shapes of what it became; a config is asked where they leave a choice.

A row of `words` words with `groups` scales holds `words * 32 = bits * groups * group_size` bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from weightloom.engine.errors import ConfigError
from weightloom.engine.quantizing.quantization import (
    AFFINE,
    AFFINE_BITS,
    AFFINE_GROUPS,
    BLOCK_MODES,
    WORD,
    Quantization,
)
from weightloom.engine.spec import TensorSpec

_FLOATS = ("F32", "F16", "BF16")
_BLOCK_SCALES = ("U8", "F8_E8M0", "F8_E4M3")


@dataclass(frozen=True, slots=True)
class Stated:
    """What a config says of a matrix, None where it does not; `own`: of this one by name, not of all."""

    bits: int | None = None
    group_size: int | None = None
    mode: str | None = None
    own: bool = False

    def __str__(self) -> str:
        said = (("bits", self.bits), ("group_size", self.group_size), ("mode", self.mode))
        return ", ".join(f"{name} {value}" for name, value in said if value is not None) or "nothing"

    def agrees(self, found: Quantization) -> bool:
        """Say whether all that it says holds."""
        pairs = ((self.bits, found.bits), (self.group_size, found.group_size), (self.mode or AFFINE, found.mode))
        return all(said is None or said == seen for said, seen in pairs)


@dataclass(frozen=True, slots=True)
class Parts:
    """The specs of a packed matrix; `path` names it in errors."""

    path: str
    weight: TensorSpec
    scales: TensorSpec
    biases: TensorSpec | None

    @property
    def words(self) -> int:
        """Words of 32 bits in a row."""
        return self.weight.shape[-1]

    @property
    def groups(self) -> int:
        """Scales of a row."""
        return self.scales.shape[-1]

    def check(self) -> None:
        """Raise ConfigError, by name, for what does not belong together."""
        if self.weight.dtype != "U32" or not self.weight.shape or not self.words:
            raise self._refused("weight", self.weight, "words of dtype U32")
        if len(self.scales.shape) != len(self.weight.shape) or self.scales.shape[:-1] != self.weight.shape[:-1]:
            raise self._refused("scales", self.scales, f"scales for each row of {self.weight}")
        if not self.groups:
            raise self._refused("scales", self.scales, "a scale for each group")
        if self.biases is not None and (self.biases.shape != self.scales.shape or self.biases.dtype not in _FLOATS):
            raise self._refused("biases", self.biases, f"a bias for each scale, {self.scales}")
        dtypes = _BLOCK_SCALES if self.biases is None else _FLOATS
        if self.scales.dtype not in dtypes:
            why = "without biases" if self.biases is None else "with biases"
            expected = f"biases too ({AFFINE}), or scales of {_BLOCK_SCALES[0]}" if self.biases is None else "floats"
            raise self._refused("scales", self.scales, expected, f" {why}")

    def _refused(self, part: str, spec: TensorSpec, expected: str, why: str = "") -> ConfigError:
        return ConfigError(
            f"{self.path} has scales, and its {part} is {spec}{why}",
            expected=expected,
            hint="get the file again, or convert the model anew",
            tensor=self.path,
            field=part,
        )


def infer(parts: Parts, stated: Stated, columns: int | None = None) -> Quantization:
    """Give the one quantization that shapes, mode and, where several fit, the config allow.

    `columns` is the width that the module has, where it is known. Raises ConfigError, with the arithmetic, where none
    fits, several do, or what the config says of this matrix by name is not so.
    """
    parts.check()
    fitting = list(_fitting(parts, stated, columns))
    if not fitting:
        raise _impossible(parts, stated, columns)
    chosen = _chosen(fitting, stated)
    if chosen is None:
        raise _undecided(parts, stated, fitting)
    if stated.own and not stated.agrees(chosen):
        raise ConfigError(
            f"{parts.path} has {chosen} by its shapes, and the config says {stated} of it",
            expected="the same in both",
            hint="correct what the config says of it",
            tensor=parts.path,
            field="quantization",
        )
    return chosen


def _fitting(parts: Parts, stated: Stated, columns: int | None) -> Iterator[Quantization]:
    """Give all ways that the shapes allow; one bit only where it is said, or the width says so."""
    product, rest = divmod(parts.words * WORD, parts.groups)
    for bits, size, mode in _ways(parts):
        if rest or bits * size != product:
            continue
        if columns == parts.groups * size or (columns is None and (bits > 1 or stated.bits == 1)):
            yield Quantization(bits, size, mode)


def _ways(parts: Parts) -> Iterator[tuple[int, int, str]]:
    if parts.biases is None:
        yield from ((bits, size, mode) for mode, (bits, size) in BLOCK_MODES.items())
    else:
        yield from ((bits, size, AFFINE) for bits in AFFINE_BITS for size in AFFINE_GROUPS)


def _chosen(fitting: list[Quantization], stated: Stated) -> Quantization | None:
    """Take what agrees most: with everything, then with the group size, then with the bits; else the only one."""
    by_size = replace(stated, bits=None, mode=fitting[0].mode) if stated.group_size else None
    by_bits = replace(stated, group_size=None, mode=fitting[0].mode) if stated.bits else None
    everything = stated if stated.group_size or stated.bits else None
    for asked in (everything, by_size, by_bits):
        agreeing = [each for each in fitting if asked is not None and asked.agrees(each)]
        if len(agreeing) == 1:
            return agreeing[0]
    return fitting[0] if len(fitting) == 1 else None


def _impossible(parts: Parts, stated: Stated, columns: int | None) -> ConfigError:
    size = stated.group_size or (columns // parts.groups if columns and columns % parts.groups == 0 else None)
    held = f"{parts.words} words of 32 bits for {parts.groups} groups"
    bits = f" of {size} are {parts.words * WORD / (parts.groups * size):g} bits an element" if size else ""
    wide = "" if columns is None else f", and its module is {columns} wide"
    return ConfigError(
        f"{parts.path}: {held}{bits}{wide}",
        expected=_expected(parts),
        hint="correct quantization.group_size in the config, or get the file again",
        tensor=parts.path,
        field="quantization",
    )


def _undecided(parts: Parts, stated: Stated, fitting: list[Quantization]) -> ConfigError:
    size = stated.group_size
    bits = f", {parts.words * WORD / (parts.groups * size):g} bits an element in groups of {size}" if size else ""
    return ConfigError(
        f"{parts.path}: {parts.words} words of 32 bits for {parts.groups} groups{bits} may be "
        f"{' or '.join(map(str, fitting))}, and the config's group_size is {size!r}",
        expected="quantization.group_size and bits in the config, which settle it",
        tensor=parts.path,
        field="quantization",
    )


def _expected(parts: Parts) -> str:
    if parts.biases is None:
        ways = ", ".join(f"{mode} {bits} in {size}" for mode, (bits, size) in BLOCK_MODES.items())
        return f"bits * group_size = words * 32 / groups, as of {ways}"
    bits, sizes = (", ".join(map(str, each)) for each in (AFFINE_BITS, AFFINE_GROUPS))
    return f"bits * group_size = words * 32 / groups, with one of {bits} bits in groups of {sizes}"
