"""What is asked about memory."""

from __future__ import annotations

from dataclasses import dataclass

from weightloom.engine.errors import UsageError


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What memory is asked about: what a load would be asked for, and the context, in tokens, of a batch of sequences.

    `quantize` is a recipe, as `load` takes it.
    """

    dtype: str | None = None
    quantize: str | None = None
    context: int | None = None
    batch: int = 1

    def __post_init__(self) -> None:
        for name, value in (("context", self.context), ("batch", self.batch)):
            if value is not None and value < 1:
                raise UsageError(f"{name} is {value}", expected="1 or more", field=name)
