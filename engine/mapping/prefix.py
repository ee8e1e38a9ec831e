"""Adding or removing the first part of every name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from weightloom.engine.errors import RuleError
from weightloom.engine.mapping.renaming import Renaming


@dataclass(frozen=True, init=False)
class PrefixChange(Renaming):
    """Add a prefix to every name (that lacks it), or remove one, below `model_prefix` if given.

    Raises RuleError unless exactly one of `prefix_to_add` and `prefix_to_remove` is given.
    """

    kind: ClassVar[str] = "prefix"
    _always_by_default: ClassVar[bool] = False

    prefix_to_add: str | None
    prefix_to_remove: str | None
    model_prefix: str | None

    def __init__(
        self,
        prefix_to_add: str | None = None,
        prefix_to_remove: str | None = None,
        model_prefix: str | None = None,
        **common: Any,
    ) -> None:
        if (prefix_to_add is None) == (prefix_to_remove is None):
            raise RuleError(
                f"prefix_to_add is {prefix_to_add!r} and prefix_to_remove is {prefix_to_remove!r}",
                expected="exactly one of them",
                field="prefix_to_add",
            )
        self._set(prefix_to_add=prefix_to_add, prefix_to_remove=prefix_to_remove, model_prefix=model_prefix)
        above = re.escape(model_prefix) + r"\." if model_prefix else ""
        if prefix_to_add is not None:
            added = re.escape(prefix_to_add) + r"\."
            source, target = rf"^{above}(?!{added})(.+)", rf"{above}{added}\1"
        else:
            removed = re.escape(prefix_to_remove or "") + r"\."
            source, target = rf"^{above}{removed}(.+)", rf"{above}\1"
        common = {k: v for k, v in common.items() if k not in ("source_patterns", "target_patterns")}
        super().__init__(source, target, **common)

    def inverse(self) -> PrefixChange:
        """Add what was removed, or remove what was added."""
        return self.replace(prefix_to_add=self.prefix_to_remove, prefix_to_remove=self.prefix_to_add)

    def summary(self) -> str:
        """Say which prefix goes or comes."""
        below = f" below {self.model_prefix}." if self.model_prefix else ""
        if self.prefix_to_add is not None:
            return f"add prefix {self.prefix_to_add}.{below}"
        return f"remove prefix {self.prefix_to_remove}.{below}"
