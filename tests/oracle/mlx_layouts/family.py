"""One family whose mlx form is compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.mlx_layouts.relaid import Relay


@dataclass(frozen=True)
class Family:
    """A family by its key (a model type or class of the reference implementation), built tiny.

    `changes` go on top of the tiny config, `class_name` and `config` name another class than the key's own. `reads`
    are fields that published configs have and the reference implementation no longer writes: they go into the config
    before anything else. `part` is the path of the module whose logits are compared, where the whole needs images.
    `destroyed` are patterns of parameters that mlx-lm itself throws away. `agrees` is how near mlx-lm's logits come to
    the reference implementation's; None where mlx-lm computes something else, `why` says what. `named` are (pattern,
    replacement) on names where files are published under others than are written today. mlx-lm itself
    `reads_published` files unless it wants another form than any that is published as such. `unused` is a package that
    its module imports and never uses, `length` that of the prompt. A `variant` is another model of the same key.
    `dtype` is that of its files, `rounds` how far from the published values those may lie that mlx-lm saved. `unrun`
    says why mlx-lm cannot compute it here. `relaid` turns what is written today into what is published.
    """

    key: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    class_name: str = ""
    config: tuple[str, str] | None = None
    reads: Mapping[str, Any] = field(default_factory=dict)
    destroyed: tuple[str, ...] = ()
    part: str = ""
    agrees: float | None = 1e-3
    why: str = ""
    named: tuple[tuple[str, str], ...] = ()
    reads_published: bool = True
    unused: str = ""
    length: int = 12
    variant: str = ""
    rounds: float = 1e-6
    unrun: str = ""
    dtype: str = "float32"
    relaid: Relay | None = None

    __hash__ = None  # type: ignore[assignment]  # it holds mappings
