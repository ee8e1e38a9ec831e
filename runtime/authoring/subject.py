"""What an author's rules are tried on: a checkpoint's headers and whose parameters they lead to, read once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weightloom.engine import Checkpoint, Plan, RuleSet, TensorSpec
from weightloom.engine.errors import CheckpointError, ConfigError, PluginError
from weightloom.plugins.architecture import Architecture
from weightloom.plugins.discovery.manager import PluginManager
from weightloom.plugins.judging.fitting import UnfitError
from weightloom.runtime.authoring.packed_model import PackedModel, packed_model
from weightloom.runtime.authoring.parameters import Parameters
from weightloom.runtime.authoring.plain_view import plain_view
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.choosing.decision import Asked, decide
from weightloom.runtime.choosing.layout_seen import find_opened
from weightloom.runtime.choosing.resolution import OUTERMOST
from weightloom.runtime.choosing.rule_choice import rewritten, shipped_rules
from weightloom.runtime.extras import need_mlx
from weightloom.runtime.opening.layout_record import DEFAULT_LAYOUT
from weightloom.runtime.opening.opening import Opened, open_path
from weightloom.runtime.terminal.text import plural


@dataclass(frozen=True)
class Subject:
    """A checkpoint, the rules that act after the author's, and the parameters; None where any name will do.

    `layout` is the one that the checkpoint is read in, `target` says in words whose parameters these are. `packed` is
    the model as it is loaded where modules of it are quantized: their parameters are others. `rewrites` says that the
    architecture has yet to rewrite the rules.
    """

    checkpoint: Checkpoint
    config: Mapping[str, Any]
    layout: str
    after: RuleSet
    parameters: Parameters | None
    target: str
    packed: PackedModel | None = None
    rewrites: bool = False

    __hash__ = None  # type: ignore[assignment]  # it holds a mapping

    @property
    def alone(self) -> Subject:
        """The same without the rules that ship for the family: the author's lead all the way to canonical names."""
        if self.parameters is None:
            return replace(self, after=RuleSet())
        found = self.parameters.architecture
        return replace(self, after=RuleSet(found.rules, found.base_model_prefix), rewrites=True)

    def rules(self, first: RuleSet) -> RuleSet:
        """Give all rules where these act first, as the architecture rewrites them."""
        prefix = self.after.base_model_prefix or first.base_model_prefix
        found = RuleSet((*first.replace_all(scope=OUTERMOST), *self.after), prefix)
        if self.parameters is None or not self.rewrites:
            return found
        return rewritten(self.parameters.architecture, found, self.config)

    @property
    def plain(self) -> Subject:
        """The same with what a vendor packed seen as plain weights: planned in no time, whatever names come out."""
        view = plain_view(self.checkpoint, self.config)
        if not view.set_aside or view.mlx:
            return self
        target = f"{self.target}; {plural(view.set_aside, 'tensor')} beside packed weights set aside"
        return replace(self, checkpoint=view.checkpoint, packed=None, target=target)

    def wanted(self, plan: Plan) -> Mapping[str, TensorSpec] | None:
        """Give the parameters that a plan of it was to lead to, in the module's order; None where any name will do."""
        if self.packed is not None:
            return self.packed.last
        return None if self.parameters is None else self.parameters.specs(plan.params.keys)


@contextmanager
def open_subject(path: str | Path, wish: Wish | None = None, arch: str | None = None) -> Iterator[Subject]:
    """Open what is at a path; it is closed at the end. Reads headers only.

    `wish.rules` is left to the author. `arch` is a model type whose architecture is taken, whatever the config says.
    Raises as opening does, PluginError for an architecture that is not installed, ConfigError where it cannot be built.
    """
    with open_path(path) as opened:
        yield subject_of(opened, replace(wish or Wish(), rules=None), arch)


def subject_of(opened: Opened, wish: Wish, arch: str | None = None) -> Subject:
    """Do the same for what is open."""
    layout = wish.layout or _layout(opened, wish)
    if arch is not None:
        return _by_name(opened, arch, wish.architecture, layout)
    if wish.open_target or wish.model_type is not None or opened.config is None:
        return _open(opened, wish, layout, "whatever the rules give")
    try:
        need_mlx()
        return _as_loaded(opened, Asked(wish.architecture, wish.task, wish.text_only), layout)
    except (PluginError, UnfitError) as error:
        if wish.architecture is not None or wish.task is not None:
            raise
        return _open(opened, wish, layout, f"whatever the rules give: {error.seen}")


def _by_name(opened: Opened, arch: str, chosen: str | None, layout: str) -> Subject:
    need_mlx()
    found = PluginManager().architecture(arch, chosen)
    config = found.repaired(_need_config(opened, found)).content
    return _of(opened, found, config, layout)


def _need_config(opened: Opened, architecture: Architecture) -> Mapping[str, Any]:
    if opened.config is None:
        raise ConfigError(
            "there is no config.json beside the weights",
            expected=f"a config.json with the sizes that {architecture.name} is built by",
            hint="write one by hand: the sizes can be read off the shapes that `weightloom inspect` shows",
            file=opened.path,
        )
    return opened.config.values


def _as_loaded(opened: Opened, asked: Asked, layout: str) -> Subject:
    """Take the architecture and the rules that a load would."""
    read = decide(opened, asked, PluginManager(), layout=layout).reading
    after = None if read.half is None else read.rules
    found = _of(opened, read.architecture, read.config, layout, after)
    return replace(found, packed=packed_model(opened, read, layout))


def _of(
    opened: Opened, found: Architecture, config: Mapping[str, Any], layout: str, after: RuleSet | None = None
) -> Subject:
    """Make a subject of an architecture; `after` are rules that are rewritten already, by default those that ship."""
    rules = shipped_rules(found, config, layout) + found.rules if after is None else after
    target, parameters = f"the parameters of {found.name} ({found.source})", Parameters(found, config)
    return Subject(opened.checkpoint, config, layout, rules, parameters, target, rewrites=after is None)


def _open(opened: Opened, wish: Wish, layout: str, target: str) -> Subject:
    choice = find_opened(opened, replace(wish, layout=layout), str(opened.path))
    config = opened.config.values if opened.config else {}
    after = RuleSet() if choice is None or layout not in choice.known else choice.rules_in(layout)
    return Subject(opened.checkpoint, config, layout, after, None, target)


def _layout(opened: Opened, wish: Wish) -> str:
    """Give the layout that is recorded or seen; the usual one where names leave it open, as a new layout's do."""
    try:
        choice = find_opened(opened, wish, str(opened.path))
    except CheckpointError:
        return DEFAULT_LAYOUT
    return DEFAULT_LAYOUT if choice is None else choice.layout
