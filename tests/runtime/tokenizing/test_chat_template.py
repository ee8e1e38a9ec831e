"""Chat templates, rendered in a sandbox."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.tokenizing.chat_template import ChatTemplate

MESSAGES = [{"role": "user", "content": " hi "}]


def render(text: str, **options: Any) -> str:
    return ChatTemplate(text, "here").render(MESSAGES, options)


def test_what_templates_use_is_there() -> None:
    assert render("{{ messages[0] | tojson }}") == '{"role": "user", "content": " hi "}'
    assert render("{{ '<a>é' | tojson }}") == '"<a>é"'
    asked = "{{ {'b': 1, 'a': 'é'} | tojson(true, sort_keys=true, separators=(',', ':')) }}"
    assert render(asked) == r'{"a":"\u00e9","b":1}'
    assert render("{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}") == "01"
    assert render("{% set n = namespace(x=1) %}{% set n.x = 3 * 2 ** 2 % 7 %}{{ n.x }}") == "5"
    assert render("{{ strftime_now('%Y') }}") == str(datetime.now().year)
    assert render("{% if add_generation_prompt %}go{% endif %}") == "go"
    assert render("  {% if true %}\nx{% endif %}") == "x"
    assert (
        render("{{ '%s-%d' | format('a', 3) }}{{ 'ab' * 3 }}{{ 'x' | indent(2) }}{{ '{}'.format(1) }}") == "a-3abababx1"
    )
    assert render("{{ documents }}", documents="given") == "given"


def test_what_is_not_given_is_none() -> None:
    """Templates that Transformers renders ask `is not none` of tools and documents."""
    asks = "{% if tools is not none %}tools{% endif %}{% if documents is defined %}{{ documents }}{% endif %}"
    assert render(asks) == "None" and render(asks, tools=[{}], documents=1) == "tools1"


def test_what_the_model_said_may_be_marked() -> None:
    marked = "{% generation %}{% set x = 2 %}{{ m.content }}{{ loop.index }}{% endgeneration %}"
    assert render("{% for m in messages %}" + marked + "{% endfor %}{{ x }}") == " hi 1"


@pytest.mark.oracle
@pytest.mark.sample
@pytest.mark.parametrize(
    "text",
    [
        "{% generation %}a{{ messages[0].role }}\n{% endgeneration %}\nb",
        "{{ messages | tojson(indent=2) }}{{ {'b': [1, 'é']} | tojson(separators=(',', ':')) }}",
        "{% for x in range(5) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}{{ tools is none }}",
        "{%- set n = namespace(x=0) %}\n  {% for m in messages %}\n{% set n.x = n.x + 1 %}{% endfor %}{{ n.x }}",
        "{{ messages[0]['content'].strip().upper() }}{{ dict(a=1).items() | list }}{{ 'a,b'.split(',') }}",
    ],
)
def test_transformers_renders_the_same(text: str) -> None:
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    assert render(text) == utils.render_jinja_template([MESSAGES], chat_template=text, add_generation_prompt=True)[0][0]


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
        "{{ strftime_now(3) }}",
    ],
)
def test_what_leads_out_or_fills_the_memory_is_a_named_error(attack: str) -> None:
    with pytest.raises(UsageError) as raised:
        render(attack)
    assert raised.value.file == "here" and "chat template" in raised.value.seen


@pytest.mark.parametrize("text", ["{% if %}", "a\n{% for %}", "{{ 'open }}", "{% endgeneration %}"])
def test_a_text_that_is_no_template_is_the_files_fault(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^here: chat_template is no template: .*, line ") as raised:
        render(text)
    assert raised.value.field == "chat_template"


def test_the_templates_own_words_reach_the_user() -> None:
    with pytest.raises(UsageError, match="roles must take turns"):
        render("{{ raise_exception('roles must take turns') }}")


def test_a_template_cannot_change_the_messages() -> None:
    messages = [{"role": "user", "content": "x"}]
    with pytest.raises(UsageError):
        ChatTemplate("{% set _ = messages.pop() %}", "here").render(messages, {})
    assert messages == [{"role": "user", "content": "x"}]
