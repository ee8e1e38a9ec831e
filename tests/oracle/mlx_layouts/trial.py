"""A family while it is compared: each form of its tiny checkpoint, made once."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tests.golden.make import file_bytes
from tests.oracle import peer
from tests.oracle.all_keys.build import Built, filled
from tests.oracle.all_keys.changes import CHANGES
from tests.oracle.all_keys.classes import class_named, config_class, pick
from tests.oracle.all_keys.published import publish
from tests.oracle.all_keys.shrink import tiny_config
from tests.oracle.mlx_layouts.family import Family
from weightloom.runtime.choosing.choice import Wish
from weightloom.runtime.converting.conversion import Converted, Order, convert

if TYPE_CHECKING:
    import mlx.core as mx
    import torch


@dataclass(frozen=True)
class Trial:
    """One family in an empty directory."""

    family: Family
    directory: Path

    @cached_property
    def built(self) -> Built:
        """The reference implementation's model, with random values."""
        import torch

        family = self.family
        chosen = pick(family.key)
        name = family.class_name or (chosen.class_name if chosen else "")
        model_class = class_named(name)
        special = family.config or (chosen.config if chosen else None)
        config_type = config_class(*special) if special else model_class.config_class
        known = next((CHANGES[n] for n in (name, family.key, config_type.model_type) if n in CHANGES), {})
        model = model_class(tiny_config(config_type, {**known, **family.changes})).eval()
        filled(model)
        model.to(getattr(torch, family.dtype))
        return Built(model, model_class, config_type)

    @cached_property
    def published(self) -> Path:
        """The published form, as the reference implementation writes it."""
        place = self.directory / "published"
        with peer.quiet():
            self.built.model.save_pretrained(place)
        publish(self.family.key, place)
        if self.family.named:
            _rename(place, self.family.named)
        if self.family.relaid:
            self.family.relaid(place)
        if self.family.reads:
            _add_fields(place, self.family.reads)
        return place

    @cached_property
    def to_mlx(self) -> Converted:
        """Our conversion to the mlx form."""
        return convert(self.published, Order(self.directory / "mlx", "mlx"), Wish())

    @cached_property
    def mlx(self) -> Path:
        """Our mlx form."""
        assert self.to_mlx.tensors
        return self.directory / "mlx"

    @cached_property
    def sanitized(self) -> Path:
        """The published weights under our config for mlx-lm, which sanitizes them itself; ours where it cannot."""
        if not self.family.reads_published:
            return self.mlx
        place, config = self.directory / "sanitized", self.mlx / "config.json"
        place.mkdir()
        for path in self.published.glob("*.safetensors"):
            shutil.copy(path, place)
        shutil.copy(config, place)
        return place

    @cached_property
    def theirs(self) -> Path:
        """What mlx-lm itself makes of the published form and saves, beside the published config."""
        from mlx_lm.utils import save_model

        place = self.directory / "theirs"
        save_model(place, self.loaded(self.sanitized))
        shutil.copy(self.published / "config.json", place)
        return place

    @cached_property
    def from_theirs(self) -> Converted:
        """Our conversion of what mlx-lm saved back to the published form."""
        return convert(self.theirs, Order(self.directory / "from_theirs", "hf"), Wish())

    @cached_property
    def tokens(self) -> list[int]:
        """A prompt."""
        return [(7 * number) % 97 + 3 for number in range(self.family.length)]

    def loaded(self, place: Path) -> Any:
        """Load a directory with mlx-lm, strictly."""
        from mlx_lm.utils import load_model

        if self.family.unused:
            sys.modules.setdefault(self.family.unused, ModuleType(self.family.unused))
        model, _ = load_model(place, strict=True)
        return model

    def logits(self, place: Path) -> mx.array:
        """Give mlx-lm's logits for a directory, through a cache as it generates."""
        import mlx.core as mx
        from mlx_lm.models.cache import make_prompt_cache

        model = self.loaded(place)
        return model(mx.array([self.tokens]), cache=make_prompt_cache(model)).astype(mx.float32)  # type: ignore[no-any-return]

    def reference(self, place: Path) -> tuple[Any, dict[str, Any]]:
        """Load a directory with the reference implementation: (model, what it says)."""
        config = self.built.config_class.from_pretrained(place)
        with peer.quiet():
            return self.built.model_class.from_pretrained(  # type: ignore[no-any-return]
                place, config=config, local_files_only=True, output_loading_info=True, dtype="auto"
            )

    @property
    def original(self) -> Any:
        """The reference implementation's model of the published form."""
        return self.reference(self.published)[0] if self.family.relaid else self.built.model

    def reference_logits(self) -> torch.Tensor:
        """Give the reference implementation's logits for the published form."""
        import torch

        model, _ = self.reference(self.published)
        with torch.no_grad():
            part = model.eval().get_submodule(self.family.part)
            return part(torch.tensor([self.tokens]), use_cache=False).logits.float()  # type: ignore[no-any-return]


def _rename(place: Path, pairs: Sequence[tuple[str, str]]) -> None:
    for file, held in peer.read_files(place).items():
        names = {name: reduce(lambda text, pair: re.sub(*pair, text), pairs, name) for name in held}
        specs = {names[name]: tensor for name, (tensor, _) in held.items()}
        data = {names[name]: raw for name, (_, raw) in held.items()}
        (place / file).write_bytes(file_bytes(specs, data))


def _add_fields(place: Path, fields: Any) -> None:
    config = json.loads((place / "config.json").read_text())
    (place / "config.json").write_text(json.dumps({**config, **fields}, indent=2))
