"""What is put around every text: a first token, a last token."""

from __future__ import annotations

from tokenizers import Tokenizer, processors


def frame(backend: Tokenizer, first: str | None, last: str | None) -> None:
    """Let `backend` put its token `first` before and `last` after each text, None for none; both must be tokens."""
    tokens = {text: backend.token_to_id(text) for text in (first, last) if text is not None}
    if not tokens:
        return
    before, after = ([] if text is None else [text] for text in (first, last))
    one, two = [*before, "$A", *after], [*before, "$B", *after]
    framing = processors.TemplateProcessing(single=one, pair=[*one, *two], special_tokens=list(tokens.items()))
    own = backend.post_processor
    backend.post_processor = framing if own is None else processors.Sequence([own, framing])
