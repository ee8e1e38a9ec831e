"""Chat templates: found in three places (C78), rendered in a sandbox."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from tests.runtime.models import add_tokenizer, runnable
from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime import load
from weightloom.runtime.tokenizing.chat_template import ChatTemplate, find_template
from weightloom.runtime.tokenizing.tokenizer import load_tokenizer

TEMPLATE = "{% for m in messages %}{{ bos_token }}[{{ m['role'] }}] {{ m['content'] | trim }}\n{% endfor %}"
MESSAGES = [{"role": "user", "content": " hi "}]


def render(text: str, **options: Any) -> str:
    return ChatTemplate(text, "here").render(MESSAGES, options)


def place(folder: Path, where: str, text: str) -> None:
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


@pytest.mark.case("C78")
@pytest.mark.parametrize("layout", ["original", "hf"])
def test_saving_keeps_the_files(tmp_path: Path, layout: str) -> None:
    """C78."""
    runnable(tmp_path / "a")
    for where in PLACES:
        place(tmp_path / "a", where, TEMPLATE)
    load(tmp_path / "a").save(tmp_path / "b", layout=layout)
    for where in PLACES:
        assert (tmp_path / "b" / where).read_bytes() == (tmp_path / "a" / where).read_bytes()


def test_of_several_named_ones_the_default_is_meant(tmp_path: Path) -> None:
    named = [{"name": "tool_use", "template": "t"}, {"name": "default", "template": TEMPLATE}]
    assert find_template(tmp_path, {"chat_template": named}) == ChatTemplate(TEMPLATE, "tokenizer_config.json")
    assert find_template(tmp_path, {}) is None


def test_what_templates_use_is_there() -> None:
    assert render("{{ messages[0] | tojson }}") == '{"role": "user", "content": " hi "}'
    assert render("{{ '<a>é' | tojson }}") == '"<a>é"'
    assert render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert render("{% set n = namespace(x=1) %}{% set n.x = 3 * 2 ** 2 % 7 %}{{ n.x }}") == "5"
    assert render("{{ strftime_now('%Y') }}") == str(datetime.now().year)
    assert render("{% if add_generation_prompt %}go{% endif %}") == "go"
    assert render("  {% if true %}\nx{% endif %}") == "x"
    assert (
        render("{{ '%s-%d' | format('a', 3) }}{{ 'ab' * 3 }}{{ 'x' | indent(2) }}{{ '{}'.format(1) }}") == "a-3abababx1"
    )
    assert render("{{ documents }}", documents="given") == "given"


@pytest.mark.parametrize(
    "attack",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''.__class__.__base__.__subclasses__() }}",
        "{{ messages.__class__.__init__.__globals__ }}",
        "{{ cycler.__init__.__globals__.os.system('id') }}",
        "{{ raise_exception.__globals__['json'] }}",
        "{{ (strftime_now | attr('__globals__'))['json'] }}",
        "{{ messages.append(1) }}",
        "{{ messages[0].update({'role': 'x'}) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{% for i in range(10**9) %}x{% endfor %}",
        "{% for i in range(1000000) %}x{% endfor %}",
        "{{ 'a' * 10000000000 }}",
        "{{ 10000000000 * 'a' }}",
        "{{ [0] * 10000000000 }}",
        "{{ 2 ** 100000 }}",
        "{{ 9 ** 9 ** 9 }}",
        "{{ 2 ** 63 * 2 ** 63 * 2 ** 63 }}",
        "{{ '%10000000000d' % 1 }}",
        "{{ '%*d' % (10000000000, 1) }}",
        "{{ '%10000000000d' | format(1) }}",
        "{{ '{:>10000000000}'.format(1) }}",
        "{{ '{:>{w}}'.format(1, w='10000000000') }}",
        "{{ 'a'.center(10000000000) }}",
        "{{ 'a'.ljust(10000000000) }}",
        "{{ 'a' | center(10000000000) }}",
        "{{ 'a\nb' | indent(10000000000) }}",
        "{{ lipsum(100000) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
        "{{ 1 / 0 }}",
        "{{ nothing.at.all }}",
        "{{ 'a' + 1 }}",
        "{{ raise_exception('roles must take turns') }}",
        "{% if %}",
        "{{ strftime_now(3) }}",
    ],
)
def test_what_leads_out_or_fills_the_memory_is_a_named_error(attack: str) -> None:
    with pytest.raises(UsageError) as raised:
        render(attack)
    assert raised.value.file == "here" and "chat template" in raised.value.seen


def test_the_templates_own_words_reach_the_user() -> None:
    with pytest.raises(UsageError, match="roles must take turns"):
        render("{{ raise_exception('roles must take turns') }}")


def test_a_template_cannot_change_the_messages() -> None:
    messages = [{"role": "user", "content": "x"}]
    with pytest.raises(UsageError):
        ChatTemplate("{% set _ = messages.pop() %}", "here").render(messages, {})
    assert messages == [{"role": "user", "content": "x"}]


def test_files_that_are_no_text_are_named(tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"chat_template\.jinja"):
        find_template(tmp_path, {})
