"""What a config says of quantization must be an object, its method a name: anything else would be passed over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from weightloom.engine.errors import ConfigError
from weightloom.engine.show import shown
from weightloom.runtime.configs.config import Config
from weightloom.runtime.configs.sections import SECTIONS

_FIELDS = ("quantization", "quantization_config")
_METHOD = "quant_method"


def check_quantization(config: Config) -> None:
    """Raise ConfigError, naming the field, for a section that is no object, or a method that is no text."""
    for field, value in _stated(config):
        if not isinstance(value, dict):
            raise _wrong(config, field, value, "an object or null")
        method = value.get(_METHOD)
        if not (method is None or isinstance(method, str)):
            raise _wrong(config, f"{field}.{_METHOD}", method, "the name of a method, or null")


def _stated(config: Config) -> Iterator[tuple[str, object]]:
    """Yield each section that is not null, at the top and in those of a text model, with its place."""
    for name in ("", *SECTIONS):
        section = config.values.get(name) if name else config.values
        said = section if isinstance(section, Mapping) else {}
        for field in _FIELDS:
            if said.get(field) is not None:
                yield f"{name}.{field}" if name else field, said[field]


def _wrong(config: Config, field: str, value: object, expected: str) -> ConfigError:
    return ConfigError(
        f"{field} is {shown(value)}",
        expected=expected,
        hint="correct config.json, or remove the field if the weights are not quantized",
        file=config.path,
        field=field,
    )
