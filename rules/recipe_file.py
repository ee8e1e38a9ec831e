"""Recipes in YAML: read with places; every problem of a file is collected and raised once.

schema: 1
recipe: mine
modules:
- {pattern: '**.gate', keep: dense}
- {pattern: ['**.v_proj', '**.down_proj'], when: 'layer < layers // 8', bits: 6, group_size: 64}
- {pattern: '**', mode: mxfp4}
tensors:
- {pattern: '**.e_score_correction_bias', dtype: keep}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.engine.mapping.rule import Place
from weightloom.engine.quantizing.quantization import AFFINE, BLOCK_MODES, MODES, Quantization
from weightloom.engine.quantizing.recipe import ModuleRule, Recipe, TensorRule
from weightloom.engine.surgery.glob import Glob
from weightloom.rules.nodes import List, Node, Scalar, show
from weightloom.rules.parse import read_bytes
from weightloom.rules.problems import Problems, did_you_mean
from weightloom.rules.reading import choice, expression, fields, name, patterns, text, truth
from weightloom.rules.yaml_text import read_yaml

VERSION = 1
GROUP_SIZE = 64
MAX_RULES = 1000
DTYPES = {"keep": None, "bf16": "BF16", "f16": "F16", "f32": "F32"}
SHIPPED = Path(__file__).parent / "recipes"
T = TypeVar("T")


def recipe_names() -> tuple[str, ...]:
    """List the recipes that ship, by name."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.yaml")))


def find_recipe(wanted: str | Path) -> Recipe:
    """Give a shipped recipe by name, or read a file. Raises UsageError for neither, and as `read_recipe` does."""
    known, path = recipe_names(), Path(wanted)
    if str(wanted) in known:
        return read_recipe(SHIPPED / f"{wanted}.yaml", f"weightloom/rules/recipes/{wanted}.yaml")
    if path.suffix in (".yaml", ".yml") or path.is_file():
        return read_recipe(path)
    raise UsageError(
        f"there is no recipe {str(wanted)!r}",
        expected=f"one of {', '.join(known)}, or a YAML file",
        hint=did_you_mean(str(wanted), known),
        field="quantize",
    )


def read_recipe(path: Path, label: str | None = None) -> Recipe:
    """Read a recipe. Raises RuleFileError with all its problems, StorageError where it cannot be read."""
    problems = Problems(label or str(path))
    node = read_yaml(read_bytes(path), problems)
    root = fields(node, "the file", problems, required=("schema", "recipe"), optional=("about", "modules", "tensors"))
    read = _Reader(problems)
    read.version(root.get("schema"))
    title = name(root.get("recipe"), "recipe", problems)
    text(root.get("about"), "about", problems)
    modules = read.rules(root.get("modules"), "modules", read.module)
    tensors = read.rules(root.get("tensors"), "tensors", read.tensor)
    if not (modules or tensors or problems.found):
        problems.add(node.at, "the recipe has no rules", expected="modules, or tensors")
    problems.check()
    return Recipe(title or "", modules, tensors)


@dataclass(frozen=True, slots=True)
class _Reader:
    problems: Problems

    def version(self, node: Node | None) -> None:
        if node is not None and not (isinstance(node, Scalar) and node.value == VERSION and node.value is not True):
            self.problems.add(node.at, f"schema is {show(node)}", expected=f"schema: {VERSION}", field="schema")

    def rules(self, node: Node | None, what: str, read: Callable[[Node], T | None]) -> tuple[T, ...]:
        if node is None:
            return ()
        if not isinstance(node, List) or not 0 < len(node.items) <= MAX_RULES:
            self.problems.add(node.at, f"{what} is {show(node)}", expected=f"a list of 1 to {MAX_RULES}", field=what)
            return ()
        return tuple(made for made in map(read, node.items) if made is not None)

    def module(self, node: Node) -> ModuleRule | None:
        optional = ("when", "keep", "bits", "group_size", "mode", "optional", "why")
        found = fields(node, "a rule of modules", self.problems, required=("pattern",), optional=optional)
        when = text(found.get("when"), "when", self.problems)
        condition = None if when is None else expression(when, found["when"].at, self.problems)
        text(found.get("why"), "why", self.problems)
        may_be_idle = truth(found.get("optional"), "optional", self.problems) or False
        return ModuleRule(self._globs(found), self._how(node, found), condition, may_be_idle, self._place(node))

    def tensor(self, node: Node) -> TensorRule | None:
        required = ("pattern", "dtype")
        found = fields(node, "a rule of tensors", self.problems, required=required, optional=("optional", "why"))
        dtype = choice(found.get("dtype"), "dtype", self.problems, tuple(DTYPES))
        text(found.get("why"), "why", self.problems)
        may_be_idle = truth(found.get("optional"), "optional", self.problems) or False
        return TensorRule(self._globs(found), DTYPES.get(dtype or "keep"), may_be_idle, self._place(node))

    def _place(self, node: Node) -> Place:
        return Place(f"{self.problems.file}:{node.at.line}", node.at.column)

    def _globs(self, found: Mapping[str, Node]) -> tuple[Glob, ...]:
        texts = patterns(found.get("pattern"), "pattern", self.problems)
        return tuple(glob for each in texts if (glob := self._glob(each, found["pattern"])) is not None)

    def _glob(self, given: str, node: Node) -> Glob | None:
        try:
            return Glob(given)
        except UsageError as error:
            self.problems.add(node.at, error.seen, expected=error.expected, field="pattern")
            return None

    def _how(self, node: Node, found: Mapping[str, Node]) -> Quantization | None:
        said = [key for key in ("bits", "group_size", "mode") if key in found]
        if "keep" in found:
            choice(found["keep"], "keep", self.problems, ("dense",))
        if ("keep" in found) == bool(said):
            self.problems.add(
                node.at,
                f"a rule with {', '.join((*said, *(['keep'] if 'keep' in found else []))) or 'neither'}",
                expected="keep: dense, or bits, group_size and mode",
            )
        return None if "keep" in found or not said else self._quantization(node, found)

    def _quantization(self, node: Node, found: Mapping[str, Node]) -> Quantization | None:
        before = len(self.problems.found)
        mode = choice(found.get("mode"), "mode", self.problems, MODES) or AFFINE
        bits, size = BLOCK_MODES.get(mode, (None, GROUP_SIZE))
        made = Quantization(self._whole(found, "bits", bits), self._whole(found, "group_size", size), mode)
        if len(self.problems.found) > before:
            return None
        try:
            made.check()
        except ConfigError as error:
            self.problems.add(node.at, error.seen, expected=error.expected, field=error.field)
            return None
        return made

    def _whole(self, found: Mapping[str, Node], key: str, default: int | None) -> int:
        node = found.get(key)
        value = node.value if isinstance(node, Scalar) else None
        if node is not None and type(value) is not int:
            self.problems.add(node.at, f"{key} is {show(node)}", expected="a whole number", field=key)
        return value if isinstance(value, int) and type(value) is int else default or 0
