"""How large each field of a config may be in a tiny model: by the field's name, first line that matches."""

from __future__ import annotations

import re

LAYERS, HIDDEN, INNER, EXPERT_INNER = 2, 32, 48, 24
HEADS, KEY_HEADS, HEAD_SIZE, RANK, VOCABULARY = 4, 2, 8, 16, 128
POSITIONS, IMAGE, PATCH, MANY = 64, 32, 8, 64

KEEP = "keep"
AT_MOST = "at most"
EXACTLY = "exactly"
WITHIN = "a token id"

# Counts of layers that name a part of the layers, or that another field must agree with, stay as they are.
_KEPT_COUNTS = (
    r".*num_kv_shared_layers|.*first_full_attention_layers|.*last_full_attention_layers|.*adapter_layers"
    r"|.*prediction_layers|.*global_layers|.*conv_layers|.*iou_head_depth"
)
_TABLE: tuple[tuple[str, str, int], ...] = (
    (_KEPT_COUNTS, KEEP, 0),
    (r"num_dense_layers|first_k_dense_replace|n_group|topk_group", AT_MOST, 1),
    (r".*layers|n_layer|depth|.*_depth", AT_MOST, LAYERS),
    (r"num_(local_|routed_)?experts|n_routed_experts|moe_num_experts", EXACTLY, 4),
    (r"num_experts_per_tok(en)?|moe_top_?k|moe_k", AT_MOST, 2),
    (r"zero_expert_num|linear_num_key_heads", EXACTLY, 2),
    (r".*num_key_value_(attention_)?heads|num_kv_heads|kv_n_heads", EXACTLY, KEY_HEADS),
    (r"heads|n_heads?|.*_heads", AT_MOST, HEADS),
    (r".*head_dim|d_kv|d_head|kv_channels|attention_head_size|head_size|dim_head", EXACTLY, HEAD_SIZE),
    (r"(q|kv)_lora_rank", EXACTLY, RANK),
    (r".*_rank", EXACTLY, 8),
    (r".*vocab_size.*|.*vocab|vocab_offset|num_qa_labels|num_.+_labels", AT_MOST, VOCABULARY),
    (r".*token_id|.*token_index|.*_token_id_.*|.*_ids?|.*_index", WITHIN, VOCABULARY),
    (r".*max_position.*|n_positions|max_(source|target)_positions|num_position_embeddings", AT_MOST, POSITIONS),
    (r"n_ctx|max_.*len.*|position_embedding_size|context_length|max_pos_emb|max_num_patches", AT_MOST, POSITIONS),
    (r"moe_intermediate_size|.*expert.*intermediate_size|expert_ffn_hidden_size", EXACTLY, EXPERT_INNER),
    (r".*intermediate.*|.*ffn_dim|d_ff|dff|dim_ff|mlp_dim|.*feedforward.*dim.*|ffn_hidden_size", AT_MOST, INNER),
    (r"image_size|crop_size|pretrain_image_size|img_size|input_resolution", AT_MOST, IMAGE),
    (r"patch_size", AT_MOST, PATCH),
    (r".*hidden_size.*|d_model|n_embd|dim|.*_dim|embedding_size|width", AT_MOST, HIDDEN),
    (r"num_queries|num_denoising", AT_MOST, 8),
    (r".*sampl(ing|e)_?rate.*|.*theta|.*temperature|train_num_points|seed|chunk_size_feed_forward", KEEP, 0),
    (r".*scalar.*|.*frequency.*|hop_length|.*_steps?|attention_window|log_scaling.*|floor_scale", KEEP, 0),
    (r"ngram_vocab_size_base|.*original_max.*|max_atomic_number", KEEP, 0),
)
_LINES = tuple((re.compile(pattern), how, size) for pattern, how, size in _TABLE)

# Lists whose numbers are not sizes.
_LISTS_KEPT = re.compile(r".*(blocks|layers|ratio|strides?|kernel.*|indices|indexes|index.*|sections?|levels?|heads?)")


def small(name: str, value: int) -> int:
    """Give the value that a field of this name has in a tiny model."""
    for pattern, how, size in _LINES:
        if pattern.fullmatch(name):
            return _limited(how, size, value)
    return HIDDEN if value > MANY else value


def small_list(name: str, values: list[int]) -> list[int]:
    """The same for a list of numbers."""
    if "image_size" in name or "pooler" in name:
        return [min(value, IMAGE) for value in values]
    if name.endswith("depths"):
        return [2 for _ in values]
    return values if _LISTS_KEPT.fullmatch(name) else [small(name, value) for value in values]


def _limited(how: str, size: int, value: int) -> int:
    if how == EXACTLY:
        return size
    if how == AT_MOST:
        return min(value, size)
    if how == WITHIN:
        return value if value < size else 60 + value % 60
    return value
