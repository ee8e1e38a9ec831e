"""A generator as a judge of pairs: its chat template renders query and document, and the next token is the verdict.

Format: the Sentence Transformers documentation, `LogitScore` (`true_token_id`, `false_token_id` in the step's folder);
the template takes messages of the roles `query` and `document`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from weightloom.engine.errors import ConfigError, UsageError
from weightloom.runtime.configs.json_file import read_json_object
from weightloom.runtime.opening.sentence_steps import SETTINGS
from weightloom.runtime.running.batches import padded

if TYPE_CHECKING:
    import mlx.core as mx

    from weightloom.plugins.judging.steps import Steps
    from weightloom.runtime.model import LoadedModel
    from weightloom.runtime.tokenizing.tokenizer import Tokenizer

_STEP = "LogitScore"
_PROBES = ("a probing query", "a probing document")


@dataclass(frozen=True, slots=True)
class Judge:
    """The ids of the tokens that say yes and no; without a no, the logit of yes alone is the score."""

    yes: int
    no: int | None

    @property
    def verdicts(self) -> tuple[int, ...]:
        """The ids that are looked at."""
        return (self.yes,) if self.no is None else (self.yes, self.no)

    def scores(self, m: LoadedModel, rows: Sequence[Sequence[int]]) -> list[mx.array]:
        """Give the score after each row, () float32; what fills a row up comes after it, where it is not seen."""
        import mlx.core as mx

        logits = _last(m, rows)
        found = logits[:, self.yes].astype(mx.float32)
        if self.no is not None:
            found = found - logits[:, self.no].astype(mx.float32)
        mx.eval(found)
        return list(found)


def read_judge(folder: Path, steps: Steps | None) -> Judge:
    """Read the tokens of the verdict. Raises UsageError where no step says them, ConfigError for what is no id."""
    step = next((step for step in (steps.listed if steps else ()) if step.kind == _STEP), None)
    if step is None:
        raise UsageError(
            "nothing says which token of this generator is a yes",
            expected=f"a step {_STEP} in modules.json, with true_token_id in its folder",
            hint="take a checkpoint that was made to score pairs",
            file=folder,
            field="true_token_id",
        )
    path = folder / step.path / SETTINGS
    content = read_json_object(path)
    no = None if content.get("false_token_id") is None else _token_id(content, "false_token_id", path)
    return Judge(_token_id(content, "true_token_id", path), no)


def _last(m: LoadedModel, rows: Sequence[Sequence[int]]) -> mx.array:
    """Give the logits (N, vocab) after each row; where the model has a head of its own, no others are made."""
    import mlx.core as mx

    from weightloom.plugins.layers.headed import Headed

    places = (mx.arange(len(rows)), mx.array([len(row) - 1 for row in rows]))
    model: Any = m.model
    found: mx.array
    if isinstance(model, Headed):
        found = model.head(model.body(padded(rows), None)[places][:, None])[:, 0]
    else:
        found = model(padded(rows))[places]
    return found


def judged_rows(tokenizer: Tokenizer, query: str, documents: Sequence[str], limit: int | None) -> list[list[int]]:
    """Give the tokens of the template with each document; raises UsageError where they are more than `limit`.

    Nothing is cut: the verdict is asked for at the template's end.
    """
    structured = _is_structured(tokenizer)
    rows = []
    for number, document in enumerate(documents):
        text = tokenizer.apply_chat_template(_messages(query, document, structured))
        row = tokenizer.encode(text, add_special_tokens=False)
        if limit is not None and len(row) > limit:
            raise UsageError(
                f"query and document {number} have {len(row)} tokens",
                expected=f"{limit} at most",
                hint="shorten the document",
                field="max_length",
            )
        rows.append(row)
    return rows


def _is_structured(tokenizer: Tokenizer) -> bool:
    """Say whether the template wants a message's content as a list; raises UsageError where it shows no pair at all."""
    for structured in (False, True):
        try:
            text = tokenizer.apply_chat_template(_messages(*_PROBES, structured))
        except UsageError:
            if tokenizer.template is None:
                raise
            continue
        if all(probe in text for probe in _PROBES):
            return structured
    raise UsageError(
        "the chat template does not show a query and a document",
        expected="a template that takes messages of the roles query and document",
        hint="take a checkpoint that was made to score pairs",
        field="chat_template",
    )


def _messages(query: str, document: str, structured: bool) -> list[Mapping[str, Any]]:
    pair = (("query", query), ("document", document))
    return [{"role": role, "content": [{"type": "text", "text": t}] if structured else t} for role, t in pair]


def _token_id(content: Mapping[str, Any], name: str, path: Path) -> int:
    found = content.get(name)
    if isinstance(found, bool) or not isinstance(found, int) or found < 0:
        raise ConfigError(f"{name} is {found!r}", expected="the id of a token", file=path, field=name)
    return found
