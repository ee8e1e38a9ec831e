"""The conformance kit: what an architecture must hold, as tests that a plugin's author inherits.

    from weightloom.plugins.testing import Conformance, Sample

    class TestMyModel(Conformance):
        samples = (Sample("plain", CONFIG), Sample("tied", {**CONFIG, "tie_word_embeddings": True}))

Each test runs on each sample: a tiny checkpoint is written by the architecture's own rules, run backwards, and loaded
as any other is. The kit stands above all layers, as a user does, and nothing imports it. It needs pytest.
"""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.plugins.testing.conformance import Conformance as Conformance
    from weightloom.plugins.testing.making import write_checkpoint as write_checkpoint
    from weightloom.plugins.testing.sample import Sample as Sample
    from weightloom.plugins.testing.subject import Subject as Subject

_MODULE_OF = {"Conformance": "conformance", "Sample": "sample", "Subject": "subject", "write_checkpoint": "making"}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)
