"""config.json's fields as values: read strictly, repaired by name.

The names below are kept stable for authors of plugins, and imported on first use.
"""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.plugins.configs.checks import FULL as FULL
    from weightloom.plugins.configs.checks import SLIDING as SLIDING
    from weightloom.plugins.configs.checks import layer_types_of as layer_types_of
    from weightloom.plugins.configs.checks import refuse_non_positive as refuse_non_positive
    from weightloom.plugins.configs.checks import window_of as window_of
    from weightloom.plugins.configs.config import read as read
    from weightloom.plugins.configs.config import refuse_unless as refuse_unless
    from weightloom.plugins.configs.expert_fields import ExpertFields as ExpertFields
    from weightloom.plugins.configs.expert_fields import read_experts as read_experts
    from weightloom.plugins.configs.names import also_named as also_named
    from weightloom.plugins.configs.rope_config import RopeConfig as RopeConfig
    from weightloom.plugins.configs.rope_config import read_rope as read_rope
    from weightloom.plugins.configs.text_fields import TextFields as TextFields

_MODULE_OF = {
    "ExpertFields": "expert_fields",
    "FULL": "checks",
    "RopeConfig": "rope_config",
    "SLIDING": "checks",
    "TextFields": "text_fields",
    "also_named": "names",
    "layer_types_of": "checks",
    "read": "config",
    "read_experts": "expert_fields",
    "read_rope": "rope_config",
    "refuse_non_positive": "checks",
    "refuse_unless": "config",
    "window_of": "checks",
}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)
