"""The encoders that come with the package, by the kit."""

from tests.runtime.models import BERT
from weightloom.plugins.testing import Conformance, Sample

WIDE = {**BERT, "hidden_size": 32, "intermediate_size": 64}


class TestBert(Conformance):
    samples = (
        Sample("plain", WIDE),
        Sample("another activation", {**WIDE, "hidden_act": "relu"}),
    )
