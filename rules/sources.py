"""Where rule files come from: the folder that ships, and what other packages offer by entry point."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType

from weightloom.engine.errors import RuleError, WeightloomError
from weightloom.rules.installed import installed_points

GROUP = "weightloom.rules"
SHIPPED = Path(__file__).parent / "data"


@dataclass(frozen=True, slots=True)
class RuleSource:
    """One rule file: its path, and how errors and reports call it."""

    path: Path
    label: str

    @property
    def ships(self) -> bool:
        """Whether it comes with weightloom, and not with another package."""
        return self.path.parent == SHIPPED


def shipped_sources() -> tuple[RuleSource, ...]:
    """List the rule files that ship."""
    return tuple(RuleSource(path, f"weightloom/rules/data/{path.name}") for path in yaml_files(SHIPPED))


def offered_sources() -> tuple[tuple[RuleSource, ...], tuple[WeightloomError, ...]]:
    """List the rule files that other packages offer, and what went wrong with a package that offers some.

    An entry point of the group is a module or folder of YAML files, or a function that gives their paths.
    """
    found: list[RuleSource] = []
    problems: list[WeightloomError] = []
    for point in sorted(installed_points(GROUP), key=lambda point: (point.name, point.value)):
        try:
            found += [RuleSource(path, str(path)) for path in _paths(_loaded(point), point)]
        except WeightloomError as error:
            problems.append(error)
    return tuple(found), tuple(problems)


def yaml_files(folder: Path) -> list[Path]:
    """List a folder's YAML files by name."""
    return sorted(path for path in folder.iterdir() if path.suffix in (".yaml", ".yml"))


def _loaded(point: EntryPoint) -> object:
    try:
        value = point.load()
        return value() if callable(value) else value
    except Exception as error:  # another package's code: whatever it raises is reported, and others still work
        raise _refused(point, f"{type(error).__name__}: {error}") from error


def _paths(value: object, point: EntryPoint) -> Iterator[Path]:
    for given in _given(value, point):
        path = Path(given)
        if not path.exists():
            raise _refused(point, f"{given} is not there")
        try:
            yield from yaml_files(path) if path.is_dir() else [path]
        except OSError as error:
            raise _refused(point, f"{given} cannot be listed: {error.strerror}") from error


def _given(value: object, point: EntryPoint) -> list[str | Path]:
    if isinstance(value, ModuleType):
        folders: Iterable[str] = getattr(value, "__path__", ()) or [str(Path(value.__file__ or "").parent)]
        return list(folders)
    given = [value] if isinstance(value, str | Path) else list(value) if isinstance(value, Iterable) else [value]
    if not all(isinstance(each, str | Path) for each in given):
        raise _refused(point, f"it gives {value!r}")
    return [each for each in given if isinstance(each, str | Path)]


def _refused(point: EntryPoint, reason: str) -> RuleError:
    package = point.dist.name if point.dist else "a package"
    return RuleError(
        f"the rules that {package} offers as {point.name!r} ({point.value}) cannot be used: {reason}",
        expected="a module or folder of YAML files, or a function that gives their paths",
        hint=f"mend or remove {package}; other rules are not touched by this",
        field=GROUP,
    )
