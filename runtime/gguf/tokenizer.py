"""The tokenizer of a GGUF model, made from its keys under `tokenizer.ggml`."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import tokenizers

from weightloom.engine.errors import ConfigError
from weightloom.engine.gguf import Gguf
from weightloom.runtime.gguf.fields import Fields
from weightloom.runtime.gguf.merges import byte_level_tokenizer, sentence_piece_tokenizer
from weightloom.runtime.gguf.vocabulary import CONTROL, PREFIX, UNKNOWN, USER_DEFINED, Vocabulary, read_vocabulary
from weightloom.runtime.tokenizing.chat_template import ChatTemplate
from weightloom.runtime.tokenizing.framing import frame
from weightloom.runtime.tokenizing.template_search import DEFAULT
from weightloom.runtime.tokenizing.tokenizer import Tokenizer
from weightloom.runtime.tokenizing.vocabulary_file import found_whole
from weightloom.runtime.tokenizing.word_splits import SPLITTINGS

_MAKERS: Mapping[str, Callable[[Vocabulary], tokenizers.Tokenizer]] = {
    "gpt2": byte_level_tokenizer,
    "llama": sentence_piece_tokenizer,
}
_SPECIAL = {"bos_token": "bos", "eos_token": "eos", "pad_token": "padding", "unk_token": "unknown"}
_TEMPLATE = "tokenizer.chat_template"
_ENDS = ("eos", "eot", "eom")


def gguf_tokenizer(model: Gguf) -> Tokenizer:
    """Make the tokenizer of a GGUF model: byte-level BPE ("gpt2") or SentencePiece BPE ("llama").

    Raises ConfigError for another kind of tokenizer or of splitting words (`pre`), and for tokens, merges or ids
    that do not fit together.
    """
    fields = Fields(model.metadata, str(model.files[0]))
    kind = fields.text(f"{PREFIX}.model")
    maker = _MAKERS.get(kind)
    if maker is None:
        raise fields.bad(f"{PREFIX}.model", f"one of {', '.join(_MAKERS)}")
    vocabulary = read_vocabulary(fields)
    backend = _made(maker, vocabulary)
    return Tokenizer(backend, _stop_ids(vocabulary), _templates(fields), special_tokens(vocabulary))


def special_tokens(vocabulary: Vocabulary) -> dict[str, str]:
    """Give the tokens with a role, by the names of tokenizer_config.json."""
    found = {name: vocabulary.named(key) for name, key in _SPECIAL.items()}
    return {name: token for name, token in found.items() if token is not None}


def _made(maker: Callable[[Vocabulary], tokenizers.Tokenizer], vocabulary: Vocabulary) -> tokenizers.Tokenizer:
    try:
        backend = maker(vocabulary)
    except ConfigError:
        raise
    except Exception as error:  # the library raises bare Exception
        raise ConfigError(
            f"the tokens and merges make no tokenizer: {error}",
            expected="merges whose parts and results are tokens",
            hint="get the model again, or elsewhere",
            file=vocabulary.fields.file,
            field=f"{PREFIX}.merges",
        ) from error
    _mark(backend, vocabulary)
    _frame(backend, vocabulary)
    return backend


def _mark(backend: tokenizers.Tokenizer, vocabulary: Vocabulary) -> None:
    """Let tokens that are no text be found whole in a text, before it is split."""
    found_whole(backend, vocabulary.of_type(CONTROL, UNKNOWN), special=True)
    found_whole(backend, vocabulary.of_type(USER_DEFINED), special=False)


def _frame(backend: tokenizers.Tokenizer, vocabulary: Vocabulary) -> None:
    """Put the tokens around a text that the file asks for."""
    fields = vocabulary.fields
    wanted = {
        "bos": fields.flag(f"{PREFIX}.add_bos_token", _adds_bos(fields)),
        "eos": fields.flag(f"{PREFIX}.add_eos_token", False),
    }
    tokens = {name: _needed(vocabulary, name) for name, flag in wanted.items() if flag}
    frame(backend, tokens.get("bos"), tokens.get("eos"))


def _needed(vocabulary: Vocabulary, name: str) -> str:
    token = vocabulary.named(name)
    if token is None:
        raise vocabulary.fields.bad(f"{PREFIX}.{name}_token_id", "an id, since it is to be added to every text")
    return token


def _adds_bos(fields: Fields) -> bool:
    """What llama.cpp does for files that do not say."""
    if fields.text(f"{PREFIX}.model") == "llama":
        return True
    splitting = SPLITTINGS.get(fields.text(f"{PREFIX}.pre", "default"))
    return splitting is not None and splitting.adds_bos


def _stop_ids(vocabulary: Vocabulary) -> frozenset[int]:
    ids = vocabulary.ids
    ends = (vocabulary.named(name) for name in _ENDS)
    return frozenset(ids[token] for token in ends if token is not None)


def _templates(fields: Fields) -> dict[str, ChatTemplate]:
    """The default one has the plain key, each further one its name behind it."""
    further = {key.removeprefix(f"{_TEMPLATE}."): key for key in fields.values if key.startswith(f"{_TEMPLATE}.")}
    keys = further | ({DEFAULT: _TEMPLATE} if fields.values.get(_TEMPLATE) is not None else {})
    return {name: ChatTemplate(fields.text(key), f"{fields.file} ({key})") for name, key in keys.items()}
