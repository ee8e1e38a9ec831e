from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.rules.plugged import install
from weightloom.engine import ops as engine_ops
from weightloom.engine.errors import RuleError
from weightloom.engine.ops import Chunk, Concatenate, ConversionOp, PermuteForRope
from weightloom.engine.ops.chain import Chain
from weightloom.rules.arguments import fits, parameters, wording
from weightloom.rules.op_table import Ops


@dataclass(frozen=True)
class Turn(ConversionOp):
    angle: int = 0

    def lower(self, chain: Chain) -> None:
        """Nothing to do."""


def refused(ops: Ops, name: str, arguments: Mapping[str, object]) -> RuleError:
    with pytest.raises(RuleError) as caught:
        ops.make(name, arguments)
    return caught.value


def test_the_engine_s_ops_are_known_by_their_names() -> None:
    assert set(Ops().names()) == set(engine_ops.__all__) - {"ConversionOp"}


def test_arguments_are_the_constructor_s() -> None:
    assert Ops().make("Chunk", {"dim": 1}) == Chunk(1)
    assert Ops().make("Concatenate", {"sizes": (1, "hidden_size")}) == Concatenate(sizes=(1, "hidden_size"))
    assert Ops().make("PermuteForRope", {"heads": {"q": 4}}) == PermuteForRope(heads={"q": 4})


def test_an_unknown_op_names_the_nearest() -> None:
    error = refused(Ops(), "MergeModuleList", {})
    assert error.seen == "unknown op 'MergeModuleList'"
    assert error.hint == "did you mean 'MergeModulelist'?"
    assert "entry points" in str(refused(Ops(), "Zzz", {}).hint)


@pytest.mark.parametrize(
    ("name", "arguments", "seen", "expected"),
    [
        ("Chunk", {"dm": 1}, "Chunk has no argument 'dm'", "one of dim, num_shards_attribute"),
        ("Chunk", {"dim": "0"}, "Chunk: dim is '0'", "a whole number"),
        ("Chunk", {"dim": True}, "Chunk: dim is True", "a whole number"),
        ("Chunk", {"dim": 1.5}, "Chunk: dim is 1.5", "a whole number"),
        ("Chunk", {"num_shards_attribute": 2}, "Chunk: num_shards_attribute is 2", "text or null"),
        ("Transpose", {"check_dims": 1}, "Transpose: check_dims is 1", "true or false"),
        ("Split", {"sizes": "x +"}, "Split: sizes is 'x +'", "a list or null"),
        ("PermuteForRope", {"heads": {"q": 1.5}}, "PermuteForRope: heads is {'q': 1.5}", None),
    ],
)
def test_wrong_arguments(name: str, arguments: dict[str, object], seen: str, expected: str | None) -> None:
    error = refused(Ops(), name, arguments)
    assert error.seen == seen
    assert expected is None or error.expected == expected


def test_an_op_may_refuse_what_its_types_allow() -> None:
    assert "cannot read the expression" in refused(Ops(), "Split", {"sizes": ("a +",)}).seen


def test_an_op_of_one_s_own() -> None:
    ops = Ops()
    ops.register("Turn", Turn)
    assert ops.make("Turn", {"angle": 90}) == Turn(90)
    assert ops.parameters("Turn") == ("angle",)
    with pytest.raises(RuleError, match="there already"):
        ops.register("Turn", Turn)
    ops.register("Turn", Chunk, overwrite=True)
    assert ops.make("Turn", {}) == Chunk()
    assert "Turn" not in Ops().names()


def test_a_maker_that_fails_or_makes_something_else() -> None:
    def failing(size: int) -> ConversionOp:
        raise ZeroDivisionError(f"no {size}")

    ops = Ops({"Fail": failing, "Text": lambda: "x"})  # type: ignore[dict-item,return-value]
    assert refused(ops, "Fail", {"size": 1}).seen == "Fail cannot be made of {'size': 1}: ZeroDivisionError: no 1"
    assert refused(ops, "Fail", {}).seen.startswith("Fail cannot be made of {}: TypeError")
    assert refused(ops, "Text", {}).seen == "Text makes 'x'"


OP_MODULE = """
from weightloom.engine.ops import ConversionOp
class Flip(ConversionOp):
    def lower(self, chain): pass
thing = 3
"""


def test_ops_by_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = {"Flip": "flip_ops:Flip", "Gone": "no_such_module:X", "Thing": "flip_ops:thing"}
    install(tmp_path, "flip", {"weightloom.ops": points}, {"flip_ops.py": OP_MODULE})
    monkeypatch.syspath_prepend(tmp_path)
    ops = Ops()
    assert type(ops.make("Flip", {})).__name__ == "Flip"
    assert "Flip" in ops.names()
    assert "cannot be imported from no_such_module:X: ModuleNotFoundError" in refused(ops, "Gone", {}).seen
    assert refused(ops, "Thing", {}).seen == "the entry point flip_ops:thing is 3"


def test_two_packages_with_one_op(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("one", "two"):
        install(tmp_path, package, {"weightloom.ops": {"Same": f"{package}_ops:Same"}}, {})
    monkeypatch.syspath_prepend(tmp_path)
    seen = refused(Ops(), "Same", {}).seen
    assert seen == "two packages offer an op named 'Same': one_ops:Same of one, two_ops:Same of two"


@pytest.mark.parametrize(
    ("value", "hint", "right"),
    [
        (1, int, True), (True, int, False), (True, bool, True), (1, bool, False), (1, float, True), ("a", str, True),
        (None, int | None, True), (True, int | None, False), (True, bool | None, True), ("b", Literal["a", "b"], True),
        ("c", Literal["a"], False), ((1, 2), tuple[int, ...], True), ((1, "a"), tuple[int, ...], False),
        ((1, "a"), tuple[int, str], True), ((1,), tuple[int, str], False), (1, Sequence[int], False),
        ({"a": 1}, Mapping[str, int], True), ({"a": "x"}, dict[str, int], False), (3, Any, True), (True, Any, True),
        (3, complex, True),
    ],
)  # fmt: skip
def test_a_value_fits_its_annotation(value: object, hint: Any, right: bool) -> None:
    assert fits(value, hint) is right


def test_words_for_annotations() -> None:
    assert wording(int | None) == "a whole number or null"
    assert wording(Literal["a", "b"] | float) == "'a' or 'b' or a number"
    assert wording(dict[str, int]) == "a mapping"


def test_a_maker_without_readable_annotations_takes_anything() -> None:
    def maker(a: "NoSuchName") -> ConversionOp:  # type: ignore[name-defined]  # noqa: F821
        return Chunk()

    assert parameters(maker) == {"a": Any}
