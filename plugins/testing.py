"""The conformance kit under the name that plugins' authors write; what stands behind it is `runtime/conformance/`.

    from weightloom.plugins.testing import Conformance, Sample

    class TestMyModel(Conformance):
        samples = (Sample("plain", CONFIG), Sample("tied", {**CONFIG, "tie_word_embeddings": True}))

Each law is tested on each sample: a tiny checkpoint, written by the architecture's own rules, run backwards, or by what
the sample says, is loaded as any other is. `judge` does the same without pytest. The kit uses all layers, as a user
does; it is named here as a text, and nothing imports it.
"""

from weightloom.engine.exports import exporting

_HOME = {
    "AGREEMENT": "laws",
    "Conformance": "suite",
    "LAWS": "laws",
    "Law": "laws",
    "Sample": "sample",
    "Subject": "subject",
    "Verdict": "verdict",
    "judge": "verdict",
    "write_checkpoint": "making",
}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]

__getattr__ = exporting("weightloom.runtime.conformance", _HOME)
