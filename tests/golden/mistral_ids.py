"""The ids that mistral-common gives texts and a conversation, by each vocabulary that it ships.

`python -m tests.golden.mistral_ids` writes them anew; it needs the `vocabularies` extra. Tests need the file alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.mistral_files import FILES, PACKAGE, VERSION

GOLDEN = Path(__file__).parent / "trained" / "mistral_ids.json"
TEXTS = [
    *("", " ", "a", "Hello, world!", " leading and  double   spaces ", "\ttabs\n\nand lines\r\n", "don't, we'll, it's"),
    *("1234567 3.14 0x1F", "größe, naïve", "東京は日本の首都です。", "नमस्ते दुनिया", "مرحبا بالعالم", "Привет"),
    *("e\u0301 combined", "👩‍👩‍👧 family 🏳️‍🌈", "def f(x):\n    return x ** 2  # square\n", "<div class='a'>"),
    *("CamelCaseWords and SHOUTING", "==== ---- ....", "\u200b\u00a0\ufeff", "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 ﬁ ①", "[not a token]", "a▁b"),
]  # fmt: skip
TURNS = [
    ("user", "What's 5 + 5?\n\n  Answer in 日本語 – please."),
    ("assistant", "5 + 5 = 10。"),
    ("user", "def f(x):\n    return x  # größe"),
]


def reference(file: Path) -> dict[str, Any]:
    """Give the ids of the texts, after the token that begins a text, and those of the conversation with its text."""
    from mistral_common.protocol.instruct.request import ChatCompletionRequest
    from mistral_common.tokens.tokenizers.base import SpecialTokenPolicy
    from mistral_common.tokens.tokenizers.mistral import MistralTokenizer

    messages: Any = [{"role": role, "content": content} for role, content in TURNS]
    made = MistralTokenizer.from_file(str(file))
    tokens = made.encode_chat_completion(ChatCompletionRequest(messages=messages)).tokens
    text = made.decode(tokens, special_token_policy=SpecialTokenPolicy.KEEP)
    inner = made.instruct_tokenizer.tokenizer
    return {
        "size": inner.n_words,
        "ids": [inner.encode(each, bos=True, eos=False) for each in TEXTS],
        # The decoder for SentencePiece spells spaces and line ends as its pieces do.
        "conversation": {"text": text.replace("▁", " ").replace("<0x0A>", "\n"), "ids": tokens},
    }


def main() -> None:
    """Write the file."""
    import mistral_common

    data = Path(mistral_common.__file__).parent / "data"
    content = {
        "source": f"{PACKAGE}=={VERSION}, the vocabularies in it",
        "texts": TEXTS,
        "files": {name: reference(data / name) for name in FILES},
    }
    GOLDEN.write_text(json.dumps(content, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
