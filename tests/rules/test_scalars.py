import pytest
import yaml

from weightloom.rules.scalars import Ambiguous, plain_value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True), ("False", False), ("null", None), ("~", None), ("", None), ("0", 0), ("-12", -12), ("+3", 3),
        ("1.5", 1.5), ("-1.0e-5", -1.0e-5), ("a", "a"), ("model.layers", "model.layers"), ("1.2.3", "1.2.3"),
        ("v1", "v1"), ("-", "-"), (".", "."), ("online", "online"), ("nope", "nope"), ("7b", "7b"), ("0.5b", "0.5b"),
    ],
)  # fmt: skip
def test_what_all_readers_agree_on(text: str, value: object) -> None:
    found = plain_value(text)
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize("text", ["1", "-3", "1.5", "1.0e-5", "true", "null", "word", "a.b"])
def test_a_reader_of_yaml_1_1_agrees(text: str) -> None:
    assert yaml.safe_load(text) == plain_value(text)


@pytest.mark.parametrize(
    "text",
    [
        "yes", "No", "ON", "off", "y", "N", "012", "0x1F", "0o17", "0b11", "1_000", "1e-5", "1e5", "1.5e3", ".5", "1.",
        "1:30", "12:30:45", "2001-12-14", "2001-12-14T21:59:43.10Z", ".inf", "-.inf", ".nan", "<<", "=",
        "12345678901234567890123",
    ],
)  # fmt: skip
def test_what_readers_disagree_on_is_refused(text: str) -> None:
    with pytest.raises(Ambiguous):
        plain_value(text)
