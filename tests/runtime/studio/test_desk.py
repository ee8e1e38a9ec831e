"""The studio plans what is typed, says where it is wrong, and saves without losing anybody's work."""

from __future__ import annotations

import pytest

from tests.runtime.studio.conftest import HEAD, RIGHT, WRONG, Asking
from weightloom.engine.mapping import patterns


def test_a_right_text_is_drawn(studio: Asking) -> None:
    found = studio.ask("plan", text=RIGHT).data
    assert found["schema"] == 1 and found["faults"] == [] and found["picture"]["loads"] is True
    assert {thread["kind"] for thread in found["picture"]["threads"]} == {"renamed", "same"}
    rules = found["picture"]["rules"]
    assert [(rule["file"], rule["line"]) for rule in rules] == [(str(studio.rules), RIGHT.count("\n"))]


def test_a_wrong_text_has_its_line_and_no_picture(studio: Asking) -> None:
    found = studio.ask("plan", text=WRONG).data
    assert found["picture"] is None
    fault = found["faults"][0]
    assert (fault["file"], fault["line"], fault["column"]) == (str(studio.rules), WRONG.count("\n"), 9)
    assert "renam" in fault["seen"] and "rename" in fault["hint"]


def test_rules_that_do_not_fit_are_drawn_and_blamed(studio: Asking) -> None:
    text = RIGHT + "      - convert: {from: '(q|k)_proj\\.weight', to: '\\1_proj.weight', ops: [{Transpose: {}}]}\n"
    found = studio.ask("plan", text=text).data
    assert found["picture"]["loads"] is False and found["faults"] == []
    assert [misfit["line"] for misfit in found["misfits"]] == [RIGHT.count("\n") + 1]


def test_a_pattern_without_end_is_stopped(studio: Asking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "TIME_LIMIT", 0.05)
    found = studio.ask("plan", text=HEAD + "      - rename: {from: '^(\\w|\\w\\w|\\.)*[%!]', to: 'x'}\n").data
    assert found["picture"] is None and "ran for more than" in found["faults"][0]["seen"]
    assert studio.ask("plan", text=RIGHT).data["picture"]["loads"] is True


def test_any_text_is_answered(studio: Asking) -> None:
    for text in ("", "\x00", "\ud800", "a: &a [*a]", "- " * 5000, "{", "schema: 1"):
        found = studio.ask("plan", text=text)
        assert found.status == 200 and found.data["faults"] and found.data["picture"] is None


def test_a_save_writes_the_text(studio: Asking) -> None:
    assert studio.ask("save", text=WRONG).data["saved"] is True
    assert studio.rules.read_text() == WRONG
    assert studio.ask("save", text=RIGHT).data["saved"] is True
    assert studio.rules.read_text() == RIGHT


def test_a_save_that_cannot_be_is_answered(studio: Asking) -> None:
    for asked, said in (
        ({"text": "\ud800"}, "surrogate"),
        ({"text": RIGHT, "path": "n" * 300 + ".yaml"}, "too long"),
        ({"text": RIGHT, "path": f"{studio.rules}/a.yaml"}, "not a directory"),
        ({"text": RIGHT, "path": "\0.yaml"}, "not a path"),
    ):
        found = studio.ask("save", **asked)
        assert found.status == 200 and found.data["saved"] is False
        assert said in found.data["error"]["message"].lower(), found.data["error"]
    assert studio.rules.read_text() == RIGHT


def test_what_others_wrote_is_not_written_over(studio: Asking) -> None:
    studio.rules.write_text("theirs")
    found = studio.ask("save", text=WRONG).data
    assert found["saved"] is False and "was changed on disk" in found["error"]["message"]
    assert studio.rules.read_text() == "theirs"
    taken = studio.ask("take").data
    assert taken["text"] == "theirs" and taken["faults"]
    assert studio.ask("save", text=RIGHT).data["saved"] is True


def test_a_file_that_went_away_is_said(studio: Asking) -> None:
    studio.rules.unlink()
    found = studio.ask("save", text=RIGHT).data
    assert found["saved"] is False and not studio.rules.exists()


def test_another_name_is_taken_where_it_is_free(studio: Asking) -> None:
    other = studio.rules.with_name("other.yaml")
    other.write_text("theirs")
    found = studio.ask("save", text=RIGHT, path=str(other)).data
    assert found["saved"] is False and "is there already" in found["error"]["message"]
    assert other.read_text() == "theirs" and found["path"] == str(studio.rules)
    new = studio.rules.with_name("new.yaml")
    found = studio.ask("save", text=RIGHT, path=str(new)).data
    assert (found["saved"], found["path"]) == (True, str(new)) and new.read_text() == RIGHT


def test_rules_are_saved_as_rules_alone(studio: Asking) -> None:
    for name in (".bashrc", "model/config.json", "a\x00.yaml", "none/there.yaml"):
        found = studio.ask("save", text=RIGHT, path=str(studio.rules.parent / name)).data
        assert found["saved"] is False and found["error"]
