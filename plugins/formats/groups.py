"""What compressed-tensors' config says of modules: groups of them, each with a scheme, and those that stay dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.engine.mapping.listing import covers
from weightloom.plugins.formats.listed import Listed
from weightloom.plugins.quantization import SECTION

# Zero points of a range that is not around 0, and the groups of columns that were put in another order.
_NEEDED: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
    "zero_point": lambda weights: weights.get("symmetric") is False,
    "g_idx": lambda weights: weights.get("actorder") in (True, "group"),
}
_FIELD = f"{SECTION}.config_groups"


@dataclass(frozen=True, slots=True)
class Scheme:
    """How the weights of a group are coded: bits, `float` or `int`, and the size of a block where there are blocks.

    `reordered`: the columns of a group may lie apart. `companions` are the ends of names that tensors of it must have
    beside codes and scales.
    """

    bits: int
    kind: str
    block: tuple[int, int] | None
    reordered: bool
    companions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Schemes:
    """Schemes by what they are for (paths, patterns, classes of layers), and the modules that have none."""

    groups: tuple[tuple[tuple[str, ...], Scheme], ...]
    plain: Listed

    @classmethod
    def of(cls, section: Mapping[str, Any]) -> Schemes:
        """Read a section; raises ConfigError, naming the group, for what cannot be."""
        found = section.get("config_groups") or {}
        if not isinstance(found, Mapping):
            raise ConfigError(f"config_groups is {found!r}", expected="groups by name", field=_FIELD)
        return cls(tuple(_groups(found)), Listed.of(section, "ignore"))

    def scheme_of(self, module: str) -> Scheme:
        """Give the scheme of a quantized module: by its path before its class; ConfigError where it has none."""
        by_path = (scheme for entries, scheme in self.groups if any(covers(entry, module) for entry in entries))
        by_class = (scheme for entries, scheme in self.groups if any(map(_is_class, entries)))
        found = next(by_path, None) or next(by_class, None)
        if found is None:
            raise ConfigError(
                f"{module} is stored as codes, and no group of config_groups is for it",
                expected="a group whose targets it is one of",
                field=_FIELD,
            )
        return found


def _is_class(entry: str) -> bool:
    return entry.isidentifier() and entry[0].isupper()


def _groups(found: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Scheme]]:
    for name, group in found.items():
        weights = group.get("weights") if isinstance(group, Mapping) else None
        targets = group.get("targets") if isinstance(group, Mapping) else None
        if not isinstance(weights, Mapping) or not isinstance(targets, list) or not all(map(_is_text, targets)):
            raise ConfigError(f"{name} is {group!r}", expected="targets and weights", field=f"{_FIELD}.{name}")
        yield tuple(targets), _scheme(weights, f"{_FIELD}.{name}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _scheme(weights: Mapping[str, Any], where: str) -> Scheme:
    bits, kind, block = weights.get("num_bits"), weights.get("type", "int"), weights.get("block_structure")
    if type(bits) is not int or kind not in ("int", "float"):
        raise ConfigError(
            f"weights of {bits!r} bits, {kind!r}", expected="num_bits, and type int or float", field=where
        )
    if isinstance(block, str):
        block = [int(size) for size in block.split("x") if size.isdigit()]
    if block is not None and (not isinstance(block, list) or len(block) != 2 or not all(type(n) is int for n in block)):
        raise ConfigError(f"block_structure is {block!r}", expected="rows and columns of a block", field=where)
    return Scheme(
        bits,
        kind,
        None if block is None else (block[0], block[1]),
        weights.get("actorder") is not None,
        tuple(end for end, is_needed in _NEEDED.items() if is_needed(weights)),
    )
