"""Chat templates: the places that they are in (C78), and which of several is meant."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import add_tokenizer, runnable
from tests.runtime.support import Cli
from weightloom.engine.errors import ConfigError, UsageError, WeightloomError
from weightloom.runtime import load
from weightloom.runtime.running.generation_prompt import prompt_ids
from weightloom.runtime.tokenizing.chat_template import ChatTemplate
from weightloom.runtime.tokenizing.template_search import find_templates
from weightloom.runtime.tokenizing.tokenizer import Tokenizer, load_tokenizer

TEMPLATE = "{% for m in messages %}{{ bos_token }}[{{ m['role'] }}] {{ m['content'] | trim }}\n{% endfor %}"
MESSAGES = [{"role": "user", "content": " hi "}]
FURTHER = "additional_chat_templates"
NAMED = [{"name": "tool_use", "template": "t{{ tools | length }}"}, {"name": "default", "template": "d"}]


def loaded(folder: Path, **settings: Any) -> Tokenizer:
    found = load_tokenizer(add_tokenizer(folder, **settings))
    assert found is not None
    return found


def same_files(one: Path, other: Path, names: Sequence[str]) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in names)


def place(folder: Path, where: str, text: Any) -> None:
    if where == "chat_template.jinja":
        (folder / where).write_text(text)
    else:
        settings = json.loads((folder / where).read_text()) if (folder / where).exists() else {}
        (folder / where).write_text(json.dumps({**settings, "chat_template": text}))


PLACES = ["chat_template.jinja", "tokenizer_config.json", "chat_template.json"]


@pytest.mark.case("C78")
@pytest.mark.parametrize("where", PLACES)
def test_each_place_gives_the_same_template(tmp_path: Path, where: str) -> None:
    """C78."""
    place(add_tokenizer(tmp_path), where, TEMPLATE)
    found = load_tokenizer(tmp_path)
    assert found is not None and found.template == ChatTemplate(TEMPLATE, where)
    assert found.apply_chat_template(MESSAGES) == "<s>[user] hi\n"


@pytest.mark.case("C78")
@pytest.mark.parametrize(("first", "second"), [(0, 1), (0, 2), (1, 2)])
def test_two_that_differ_warn_and_the_order_decides(tmp_path: Path, first: int, second: int) -> None:
    """C78. Chosen: chat_template.jinja, then tokenizer_config.json, then chat_template.json; the load notes it."""
    runnable(tmp_path)
    place(tmp_path, PLACES[first], TEMPLATE)
    place(tmp_path, PLACES[second], TEMPLATE + "\n")
    assert load(tmp_path).notes == ()
    place(tmp_path, PLACES[second], "other")
    m = load(tmp_path)
    assert m.notes == (f"{PLACES[first]} is used; {PLACES[second]} has another template",)
    assert m.need_tokenizer().template.text == TEMPLATE  # type: ignore[union-attr]


def with_all_places(folder: Path) -> list[str]:
    """A model with a template in each place, and a folder of further ones; the names of those files."""
    runnable(folder)
    for where in PLACES:
        place(folder, where, TEMPLATE)
    (folder / FURTHER).mkdir()
    (folder / FURTHER / "tool_use.jinja").write_text("tools")
    return [*PLACES, f"{FURTHER}/tool_use.jinja"]


@pytest.mark.case("C78")
@pytest.mark.parametrize("layout", ["original", "hf", "mlx"])
def test_saving_keeps_the_files(tmp_path: Path, layout: str) -> None:
    """C78."""
    names = with_all_places(tmp_path / "a")
    load(tmp_path / "a").save(tmp_path / "b", layout=layout)
    assert same_files(tmp_path / "a", tmp_path / "b", names)


@pytest.mark.case("C78")
@pytest.mark.parametrize("options", [["--layout", "mlx"], ["--dtype", "bf16"]])
def test_conversion_keeps_the_files(cli: Cli, tmp_path: Path, options: list[str]) -> None:
    """C78."""
    names = with_all_places(tmp_path / "a")
    ran = cli("convert", tmp_path / "a", tmp_path / "b", *options)
    assert ran.code == 0, ran.err
    assert same_files(tmp_path / "a", tmp_path / "b", names)


@pytest.mark.parametrize("form", [NAMED, {each["name"]: each["template"] for each in NAMED}])
def test_of_several_one_is_chosen_by_name_by_tools_or_by_default(tmp_path: Path, form: object) -> None:
    found = loaded(tmp_path, chat_template=form)
    assert found.apply_chat_template(MESSAGES) == "d" == found.apply_chat_template(MESSAGES, tools=None)
    assert found.apply_chat_template(MESSAGES, tools=[{}, {}]) == "t2"
    assert found.apply_chat_template(MESSAGES, chat_template="tool_use", tools=[]) == "t0"
    assert found.apply_chat_template(MESSAGES, chat_template="default", tools=[{}]) == "d"
    assert found.template == ChatTemplate("d", "tokenizer_config.json")


def test_a_folder_has_further_ones(tmp_path: Path) -> None:
    (tmp_path / FURTHER).mkdir()
    (tmp_path / FURTHER / "rag.jinja").write_text("r")
    (tmp_path / FURTHER / "notes.txt").write_text("no template")
    place(tmp_path, "chat_template.jinja", "d")
    found = loaded(tmp_path)
    assert set(found.templates) == {"default", "rag"} and found.notes == ()
    assert found.apply_chat_template(MESSAGES, chat_template="rag") == "r"
    assert found.templates["rag"].source == f"{FURTHER}/rag.jinja"


def test_each_name_is_taken_from_its_first_place(tmp_path: Path) -> None:
    (tmp_path / FURTHER).mkdir()
    (tmp_path / FURTHER / "tool_use.jinja").write_text("folder")
    found = loaded(tmp_path, chat_template=NAMED)
    assert found.apply_chat_template(MESSAGES, tools=[]) == "folder" and found.apply_chat_template(MESSAGES) == "d"
    assert found.notes == (f"{FURTHER}/tool_use.jinja is used; tokenizer_config.json has another template",)


@pytest.mark.parametrize(("form", "name"), [(NAMED, "rag"), (NAMED[:1], None), ("d", "rag")])
def test_a_name_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path, form: Any, name: str | None) -> None:
    found = loaded(tmp_path, chat_template=form)
    with pytest.raises(UsageError, match=repr(name or "default")) as raised:
        found.apply_chat_template(MESSAGES, chat_template=name)
    assert all(each in str(raised.value.expected) for each in found.templates)


def test_a_model_without_any_says_where_one_may_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no chat template") as raised:
        loaded(tmp_path).apply_chat_template(MESSAGES)
    assert all(where in str(raised.value.expected) for where in (*PLACES, FURTHER))


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (5, "chat_template"),
        (["x"], r"chat_template\[0\]"),
        ([{"name": "default"}], r"chat_template\[0\]"),
        ([{"name": 3, "template": "x"}], r"chat_template\[0\]"),
        ({"default": None}, r"chat_template\.default"),
    ],
)
def test_what_is_no_template_is_named(tmp_path: Path, value: object, field: str) -> None:
    with pytest.raises(ConfigError, match=field):
        loaded(tmp_path, chat_template=value)


@pytest.mark.parametrize("name", ["chat_template.jinja", f"{FURTHER}/x.jinja"])
def test_files_that_are_no_text_are_named(tmp_path: Path, name: str) -> None:
    (tmp_path / FURTHER).mkdir()
    (tmp_path / name).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"\.jinja"):
        find_templates(tmp_path, {})


def test_a_conversation_and_the_command_take_a_name(cli: Cli, tmp_path: Path) -> None:
    runnable(tmp_path)
    place(tmp_path, "tokenizer_config.json", [{"name": "short", "template": "<{{ messages[0].content }}>"}])
    m = load(tmp_path)
    assert prompt_ids(m, MESSAGES, "short") == m.need_tokenizer().encode("< hi >", add_special_tokens=False)
    with pytest.raises(WeightloomError, match="no conversation"):
        prompt_ids(m, "hi", "short")
    assert cli("generate", tmp_path, "-p", "a", "--chat-template", "short", "--max-tokens", "1").code == 0
    ran = cli("generate", tmp_path, "-p", "a", "--chat")
    assert ran.code != 0 and "short" in ran.err


@pytest.mark.oracle
@pytest.mark.sample
def test_transformers_finds_the_same(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    names = with_all_places(tmp_path)
    add_tokenizer(tmp_path, chat_template="another", eos_token="</s>")
    found = load_tokenizer(tmp_path)
    reference = transformers.PreTrainedTokenizerFast.from_pretrained(tmp_path)
    assert names and found is not None
    assert {name: each.text for name, each in found.templates.items()} == reference.chat_template
