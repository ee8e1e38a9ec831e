"""What tensors of another shape or class of dtype probably are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weightloom.engine.planning.report import LoadReport, Mismatch

# As a spec is written: dtypes that hold what scales give a value.
_PACKED = ("U32", "I32", "U8", "I8", "F8_", "F4")
_DOUBLE = "F64 "


def mismatch_hints(report: LoadReport) -> Iterator[str]:
    """Name what is stored the other way round, and words, codes or doubles where floats are wanted."""
    turned = [each for each in report.mismatched if "transposed" in each.differs]
    if turned:
        yield (
            f"stored the other way round: {_some(turned)}; "
            "the file is in another layout, or a `convert` rule with Transpose is missing"
        )
    packed = [each for each in report.mismatched if "dtype class" in each.differs and each.seen.startswith(_PACKED)]
    if packed:
        yield (
            f"words or codes where floats are wanted: {_some(packed)}; "
            "they are packed, and their scales are not in the file or have other names"
        )
    doubles = [each for each in report.mismatched if "dtype class" in each.differs and each.seen.startswith(_DOUBLE)]
    if doubles:
        yield f"F64, which no parameter holds: {_some(doubles)}; write them as F32 with what published them"


def _some(found: Sequence[Mismatch]) -> str:
    first = found[0].sources[0]
    return first if len(found) == 1 else f"{first} and {len(found) - 1:,} more"
