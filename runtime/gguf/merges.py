"""The two kinds of vocabulary that grow tokens by merging neighbours."""

from __future__ import annotations

from tokenizers import Tokenizer, decoders, normalizers, pre_tokenizers, processors
from tokenizers.models import BPE

from weightloom.runtime.gguf.vocabulary import NORMAL, PREFIX, USER_DEFINED, Vocabulary
from weightloom.runtime.tokenizing.merges import implied_merges
from weightloom.runtime.tokenizing.word_splits import SPLITTINGS

# SentencePiece's sign for a space.
_SPACE = "\u2581"


def byte_level_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """Make a byte-level BPE tokenizer: its merges are stated in order."""
    fields = vocabulary.fields
    key = f"{PREFIX}.pre"
    splitting = SPLITTINGS.get(fields.text(key, "default"))
    if splitting is None:
        raise fields.bad(key, f"one of {', '.join(SPLITTINGS)}")
    merges = [_parts(merge, vocabulary) for merge in fields.many(f"{PREFIX}.merges", str)]
    backend = Tokenizer(BPE(vocab=vocabulary.ids, merges=merges, ignore_merges=splitting.whole_words))
    if splitting.normalizer is not None:
        backend.normalizer = splitting.normalizer()
    backend.pre_tokenizer = pre_tokenizers.Sequence(splitting.steps())
    backend.decoder = decoders.ByteLevel()
    backend.post_processor = processors.ByteLevel(trim_offsets=False)
    return backend


def sentence_piece_tokenizer(vocabulary: Vocabulary) -> Tokenizer:
    """Make a SentencePiece BPE tokenizer: its merges follow from the tokens' scores; other characters are bytes."""
    fields = vocabulary.fields
    unknown = vocabulary.named("unknown")
    model = BPE(
        vocab=vocabulary.ids, merges=_by_score(vocabulary), unk_token=unknown, fuse_unk=True, byte_fallback=True
    )
    backend = Tokenizer(model)
    spaces = normalizers.Replace(" ", _SPACE)
    back = [decoders.Replace(_SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    if fields.flag(f"{PREFIX}.add_space_prefix", True):
        backend.normalizer = normalizers.Sequence([normalizers.Prepend(_SPACE), spaces])
        backend.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)])
    else:
        backend.normalizer = spaces
        backend.decoder = decoders.Sequence(back)
    return backend


def _parts(merge: str, vocabulary: Vocabulary) -> tuple[str, str]:
    # A part may itself begin with a space.
    at = merge.find(" ", 1)
    if at < 0:
        raise vocabulary.fields.bad(f"{PREFIX}.merges", f"two parts with a space between, not {merge!r}")
    return merge[:at], merge[at + 1 :]


def _by_score(vocabulary: Vocabulary) -> list[tuple[str, str]]:
    """Give all pairs of tokens that make a token, the best result first; of equals, the lower ids first."""
    ids = vocabulary.ids
    scores = vocabulary.fields.many(f"{PREFIX}.scores", float, len(vocabulary.tokens))
    made = [number for number, kind in enumerate(vocabulary.types) if kind in (NORMAL, USER_DEFINED)]
    best_first = sorted(made, key=lambda number: -scores[number])
    return implied_merges(ids, (vocabulary.tokens[number] for number in best_first))
