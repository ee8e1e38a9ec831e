"""The element types of a GGUF file: how many elements a block holds, in how many bytes.

Source: the GGUF specification (ggml project, docs/gguf.md) and the type table of the `gguf` package.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class GgmlType:
    """One type: its name, the elements of a block and the bytes that a block takes.

    `plain` is the safetensors name of the same type, where there is one. `packed` says that MLX has an exact form
    for its blocks; `readable` that its values are known how to compute.
    """

    name: str
    block: int
    nbytes: int
    plain: str | None = None
    packed: bool = False
    readable: bool = True


TYPES: dict[int, GgmlType] = {
    0: GgmlType("F32", 1, 4, plain="F32"),
    1: GgmlType("F16", 1, 2, plain="F16"),
    2: GgmlType("Q4_0", 32, 18, packed=True),
    3: GgmlType("Q4_1", 32, 20, packed=True),
    6: GgmlType("Q5_0", 32, 22, packed=True),
    7: GgmlType("Q5_1", 32, 24, packed=True),
    8: GgmlType("Q8_0", 32, 34, packed=True),
    9: GgmlType("Q8_1", 32, 40, readable=False),
    10: GgmlType("Q2_K", 256, 84),
    11: GgmlType("Q3_K", 256, 110),
    12: GgmlType("Q4_K", 256, 144, packed=True),
    13: GgmlType("Q5_K", 256, 176, packed=True),
    14: GgmlType("Q6_K", 256, 210),
    15: GgmlType("Q8_K", 256, 292, readable=False),
    16: GgmlType("IQ2_XXS", 256, 66),
    17: GgmlType("IQ2_XS", 256, 74),
    18: GgmlType("IQ3_XXS", 256, 98),
    19: GgmlType("IQ1_S", 256, 50),
    20: GgmlType("IQ4_NL", 32, 18),
    21: GgmlType("IQ3_S", 256, 110),
    22: GgmlType("IQ2_S", 256, 82),
    23: GgmlType("IQ4_XS", 256, 136),
    24: GgmlType("I8", 1, 1, plain="I8"),
    25: GgmlType("I16", 1, 2, plain="I16"),
    26: GgmlType("I32", 1, 4, plain="I32"),
    27: GgmlType("I64", 1, 8, plain="I64"),
    28: GgmlType("F64", 1, 8, plain="F64"),
    29: GgmlType("IQ1_M", 256, 56),
    30: GgmlType("BF16", 1, 2, plain="BF16"),
    34: GgmlType("TQ1_0", 256, 54),
    35: GgmlType("TQ2_0", 256, 66),
    39: GgmlType("MXFP4", 32, 17, packed=True),
}
