"""The names in a new package, all from the one that the author gives."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from weightloom.engine.errors import UsageError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_.][A-Za-z0-9]+)*")


@dataclass(frozen=True, slots=True)
class Names:
    """`my-arch`: the distribution `weightloom-my-arch`, the module and model type `my_arch`, the class `MyArch`."""

    given: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.given) or keyword.iskeyword(self.module):
            raise UsageError(
                f"{self.given!r} is no name for a package",
                expected="letters, digits and single - or _ between them, beginning with a letter, such as my-arch",
                field="name",
            )

    @property
    def words(self) -> tuple[str, ...]:
        """The parts of the name."""
        return tuple(re.split(r"[-_.]", self.given))

    @property
    def module(self) -> str:
        """The module's name, which is the model type."""
        return "_".join(self.words).lower()

    @property
    def class_name(self) -> str:
        """The class's name."""
        return "".join(word[0].upper() + word[1:] for word in self.words)

    @property
    def distribution(self) -> str:
        """The distribution's name."""
        return "weightloom-" + "-".join(self.words).lower()
