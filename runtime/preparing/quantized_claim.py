"""A config that says that the weights are packed must be right."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.runtime.opening.opening import Opened


def refuse_unquantized(packed: Collection[str], config: Mapping[str, Any], opened: Opened) -> None:
    """Raise ConfigError where the config claims MLX's packing and no module is packed.

    A section that names a method is another format's; an empty one claims nothing.
    """
    for field in ("quantization", "quantization_config"):
        section = config.get(field)
        if packed or not isinstance(section, Mapping) or section.get("quant_method") is not None:
            continue
        if "bits" in section and "group_size" in section:
            raise ConfigError(
                f"{field} says {section['bits']} bits in groups of {section['group_size']}, and no tensor of "
                f"{', '.join(str(file) for file in opened.checkpoint.files) or opened.path} has scales",
                expected="packed weights, or a config that does not say that they are",
                hint=f"remove {field} from the config, or get the weights that belong to it",
                file=opened.need_config().path,
                field=field,
            )
