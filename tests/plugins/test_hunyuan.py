"""What Hunyuan refuses: keys are kept normed, so no rope that changes; and norms that are switched off."""

from typing import Any

import pytest

from tests.families.family import SIZES
from weightloom.engine.errors import ConfigError
from weightloom.plugins.architectures.hunyuan_v1_dense import read_config


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, "rope_type"),
        ({"use_qk_norm": False}, "use_qk_norm"),
    ],
)
def test_what_it_cannot_run_is_named(values: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_config({**SIZES, **values})
    assert caught.value.field == field


def test_published_settings_are_read() -> None:
    scaling = {"alpha": 1000.0, "beta_fast": 32, "beta_slow": 1, "factor": 1.0, "mscale": 1.0, "type": "dynamic"}
    read = read_config({**SIZES, "head_dim": 16, "use_qk_norm": True, "rope_theta": 10000.0, "rope_scaling": scaling})
    assert read.attention.head_dim == 16
