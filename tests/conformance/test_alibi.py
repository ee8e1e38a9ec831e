"""Baichuan's 13B form, whose config has no `max_position_embeddings`: no reference runs it; the kit alone tries it."""

from tests.families.family import WITHOUT_SHARED_HEADS
from weightloom.plugins.testing import Conformance, Sample

SIZES = {name: size for name, size in WITHOUT_SHARED_HEADS.items() if name != "max_position_embeddings"}


class TestAlibi(Conformance):
    samples = (Sample("baichuan: ALiBi", {"model_type": "baichuan", "model_max_length": 64, **SIZES}),)
