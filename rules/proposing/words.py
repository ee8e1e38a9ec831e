"""What parts of names mean, whoever wrote them: the spellings that the field has for the same thing.

No family is named here. A whole part is looked up first, then its words. Words that say nothing of which parameter it
is (`proj`, `linear`, the model around everything) mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

_MEANING: dict[str, str] = {
    "q": "q_proj wq to_q q_lin query_proj linear_q q_linear query",
    "k": "k_proj wk to_k k_lin key_proj linear_k k_linear key",
    "v": "v_proj wv to_v v_lin value_proj linear_v v_linear value",
    "q k v": "qkv qkv_proj wqkv to_qkv query_key_value attn_qkv",
    "o": "o_proj wo out_proj to_out out_lin attn_out o dense",
    "attn o": "attn_output",
    "attn q": "attn_q",
    "attn k": "attn_k",
    "attn v": "attn_v",
    "gate": "gate_proj w1 c_fc_0 linear_gate",
    "up": "up_proj w3 c_fc_1 fc1 c_fc fc_in dense_h_to_4h linear_fc1 lin1",
    "down": "down_proj w2 fc2 fc_out dense_4h_to_h linear_fc2 lin2",
    "gate up": "gate_up_proj w13 gate_and_up_proj",
    "mlp gate": "ffn_gate",
    "mlp up": "ffn_up",
    "mlp down": "ffn_down",
    "router": "router gate gate_inp ffn_gate_inp wg",
    "experts": "experts switch_mlp local_experts switch_glu",
    "experts gate": "ffn_gate_exps",
    "experts up": "ffn_up_exps",
    "experts down": "ffn_down_exps",
    "shared experts": "shared_experts shared_expert shared_mlp shexp",
    "attn": "self_attn attention attn self_attention self_attn_layer",
    "mlp": "mlp feed_forward ffn ff feedforward block_sparse_moe moe",
    "embed": "embed_tokens wte tok_embeddings word_embeddings token_embd embed_in embedding embeddings tokens_embed",
    "embed place": "wpe position_embeddings position_embd pos_embed embed_positions",
    "head": "lm_head embed_out output_layer output head",
    "norm last": "norm ln_f final_layernorm norm_f final_norm output_norm final_layer_norm",
    "norm before attn": (
        "input_layernorm attention_norm attn_norm ln_1 norm1 operator_norm pre_attention_layernorm"
        " attention_layer_norm pre_attn_norm input_norm"
    ),
    "norm before mlp": (
        "post_attention_layernorm ffn_norm ln_2 norm2 mlp_norm pre_mlp_layernorm pre_feedforward_layernorm"
        " feedforward_layer_norm pre_mlp_norm pre_ff_layernorm"
    ),
    "norm q": "q_norm query_layernorm q_layernorm query_norm attn_q_norm",
    "norm k": "k_norm key_layernorm k_layernorm key_norm attn_k_norm",
    "layers": "layers h blk blocks layer block",
    "": "model transformer backbone gpt_neox decoder encoder language_model",
}
# Where a block has a norm before its feed-forward by another name, this one is behind the attention.
_AFTER_ATTENTION = "post_attention_layernorm"
_OTHER_BEFORE_MLP = {"pre_feedforward_layernorm", "pre_mlp_layernorm", "pre_ff_layernorm"}
_PART: dict[str, tuple[str, ...]] = {
    spelling: tuple(meaning.split()) for meaning, all_ in _MEANING.items() for spelling in all_.split()
}
_WORD = {
    "attention": "attn",
    "feedforward": "mlp",
    "ffn": "mlp",
    "ff": "mlp",
    "layernorm": "norm",
    "ln": "norm",
    "embeddings": "embed",
    "embedding": "embed",
    "embd": "embed",
    "query": "q",
    "key": "k",
    "value": "v",
    "output": "o",
    "out": "o",
    "input": "in",
    "expert": "experts",
    "exps": "experts",
    "conv1d": "conv",
    "conv2d": "conv",
    "conv3d": "conv",
    "positions": "place",
    "position": "place",
}
_NOTHING = {"proj", "linear", "layer", "weight", "dense", "w", "lin", "module"}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+(?:\d+d(?![a-z]))?\d*|\d+")


def meaning(part: str, beside: frozenset[str]) -> tuple[str, ...]:
    """Give the words of a part; `beside` are all parts that names on its side have."""
    lower = part.lower()
    if lower == _AFTER_ATTENTION and beside & _OTHER_BEFORE_MLP:
        return ("norm", "post", "attn")
    if lower in _PART:
        return _PART[lower]
    words = (found.group().lower() for found in _WORDS.finditer(part))
    return tuple(_WORD.get(word, word) for word in words if word not in _NOTHING)


# In which order parts that are fused stand, where the name of the whole does not say.
_ORDER = ("q", "k", "v", "gate", "up")


def in_order(parts: Sequence[T], whole: Sequence[str], words: Callable[[T], Sequence[str]]) -> list[T]:
    """Put the parts of a fused tensor in the order in which the name of the whole says them, else in the usual one."""
    known = (*whole, *(word for word in _ORDER if word not in whole))

    def place(part: T) -> int:
        return min((known.index(word) for word in words(part) if word in known), default=len(known))

    return sorted(parts, key=place)
