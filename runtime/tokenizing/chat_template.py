"""A chat template: a text from a checkpoint, which is not trusted, that makes a prompt of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import TemplateSyntaxError

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.tokenizing.template_language import rendered


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A template's text, where it came from, and a note if another file has a different one."""

    text: str
    source: str
    note: str | None = None

    def render(self, messages: Sequence[Mapping[str, Any]], options: Mapping[str, Any]) -> str:
        """Render messages (mappings with `role` and `content`).

        Raises ConfigError for a text that is no template, UsageError with the template's own words.
        """
        try:
            return rendered(self.text, {**options, "messages": messages})
        except TemplateSyntaxError as error:
            raise ConfigError(
                f"chat_template is no template: {error.message}, line {error.lineno}",
                expected="a text in the language of Jinja",
                hint="correct it, or choose another by name",
                file=self.source,
                field="chat_template",
            ) from error
        except Exception as error:  # a stranger's template may raise anything
            raise UsageError(
                f"the chat template of {self.source} does not take these messages: {error}",
                expected="messages as the template wants them: role and content, roles in turn",
                file=self.source,
            ) from error
