"""The conformance kit under the name that plugins' authors write; what stands behind it is `runtime/conformance/`.

    from weightloom.plugins.testing import Conformance, Sample

    class TestMyModel(Conformance):
        samples = (Sample("plain", CONFIG), Sample("tied", {**CONFIG, "tie_word_embeddings": True}))

Each test runs on each sample: a tiny checkpoint is written by the architecture's own rules, run backwards, and loaded
as any other is. The kit uses all layers, as a user does; it is named here as a text, and nothing imports it.
"""

from weightloom.engine.exports import exporting

_HOME = {"Conformance": "suite", "Sample": "sample", "Subject": "subject", "write_checkpoint": "making"}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = exporting("weightloom.runtime.conformance", _HOME)
