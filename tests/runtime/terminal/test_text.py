from __future__ import annotations

import argparse

import pytest

from weightloom.runtime.terminal.arguments import byte_count, count
from weightloom.runtime.terminal.printing import visible
from weightloom.runtime.terminal.text import aligned, plural, size


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.00 kB"),
        (4096, "4.10 kB"),
        (90_868_376, "90.9 MB"),
        (999_499, "999 kB"),
        (999_500, "1.00 MB"),
        (5 * 10**9, "5.00 GB"),
        (1_600_000_000_000, "1.60 TB"),
        (10**19, "10000 PB"),
    ],
)
def test_size(nbytes: int, text: str) -> None:
    assert size(nbytes) == text


@pytest.mark.parametrize(
    ("text", "nbytes"),
    [
        ("1", 1),
        ("5GB", 5 * 10**9),
        ("500 MB", 5 * 10**8),
        ("2GiB", 2**31),
        ("1.5kB", 1500),
        ("30mb", 3 * 10**7),
        ("1KiB", 1024),
        ("1T", 10**12),
        (" 7B ", 7),
    ],
)
def test_byte_count(text: str, nbytes: int) -> None:
    assert byte_count(text) == nbytes


@pytest.mark.parametrize("text", ["", "0", "GB", "-1", "1XB", "0.1", "1e9", "nan", "5 G B", "٥"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="size"):
        byte_count(text)


@pytest.mark.parametrize("text", ["", "-1", "1.0", "x", "²"])
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="count"):
        count(text)


def test_plural() -> None:
    assert [plural(n, "tensor") for n in (0, 1, 2, 1000)] == ["0 tensors", "1 tensor", "2 tensors", "1,000 tensors"]


def test_aligned() -> None:
    assert aligned([("a", "1", "x"), ("bcd", "22", "")], right=(1,)) == ["a     1  x", "bcd  22"]
    assert aligned([]) == []


def test_control_characters_are_shown() -> None:
    assert visible("a\x1b[0m\r\nb\tc\x00\u202e") == "a\\x1b[0m\\r\nb\tc\\x00\\u202e"
