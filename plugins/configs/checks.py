"""Checks and derived numbers of configs that decoders share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weightloom.engine.errors import ConfigError
from weightloom.plugins.configs.config import refuse_unless

FULL, SLIDING = "full_attention", "sliding_attention"
LARGEST = 2**31 - 1
WIDEST = 2**24
_WIDEST_HEAD = 2**16
_MOST_HEADS = 2**12
_MOST_LAYERS = 2**16
# By how a field's name ends; what a model has of two such sizes at once is then within what MLX can count.
_MOST = {
    ("layers", "n_layer"): _MOST_LAYERS,
    ("heads", "n_head"): _MOST_HEADS,
    ("head_dim", "state_size", "d_state"): _WIDEST_HEAD,
    ("expand",): 2**5,
    # As many for each layer, side by side.
    ("hidden_size_per_layer_input",): 2**14,
    ("_size", "_size_mlp", "_rank", "dim", "n_embd", "n_inner"): WIDEST,
}


def refuse_non_positive(sizes: Mapping[str, int | float]) -> None:
    """Raise ConfigError for the first size, by field name, that is not a positive number, or beyond MLX's.

    What is said of each layer is listed as a config is read, and some sizes are made of others, so fields that count
    layers or heads or are widths have lower limits.
    """
    for field, value in sizes.items():
        most = next((most for ends, most in _MOST.items() if field.endswith(ends)), LARGEST)
        refuse_unless(0 < value <= most, field, value, f"a positive number, {most} at most")


def refuse_non_positive_where_given(sizes: Mapping[str, int | float | None]) -> None:
    """Raise ConfigError likewise; None is no size, and fine."""
    refuse_non_positive({field: value for field, value in sizes.items() if value is not None})


def head_dim_of(
    given: int | None, hidden_size: int, heads: int, field: str = "head_dim", whole: str = "hidden_size"
) -> int:
    """Give the size of a head: as given in `field`, else an equal part of the hidden size, which is in `whole`.

    Raises ConfigError, naming the one that is off.
    """
    # What is computed of each dim of a head is computed as a model is made, before any shape is compared.
    if given is not None:
        refuse_non_positive({field: given})
        refuse_unless(given <= _WIDEST_HEAD, field, given, f"{_WIDEST_HEAD} at most")
        return given
    multiple = f"a multiple of num_attention_heads, {heads}, by {_WIDEST_HEAD} at most, or a head_dim"
    fits = hidden_size % heads == 0 and hidden_size // heads <= _WIDEST_HEAD
    refuse_unless(fits, whole, hidden_size, multiple)
    return hidden_size // heads


def kv_heads_of(given: int | None, heads: int, field: str = "num_key_value_heads") -> int:
    """Give the number of key and value heads; None is one a query head. Raises ConfigError if they do not divide."""
    if given is None:
        return heads
    fine = given > 0 and heads % given == 0
    refuse_unless(fine, field, given, f"a divisor of num_attention_heads, {heads}")
    return given


def layer_types_of(
    given: Sequence[str] | None,
    count: int,
    otherwise: str,
    every: int | None = None,
    known: Sequence[str] = (FULL, SLIDING),
) -> tuple[str, ...]:
    """Give each layer's type: as listed, else one full layer in `every` layers, else `otherwise` for all.

    `every` is sliding_window_pattern. Raises ConfigError for a list of a wrong length or with a type that is not
    `known`, and where the two differ.
    """
    refuse_non_positive({"num_hidden_layers": count})
    patterned = None if every is None else _one_full_in(every, count)
    if given is None:
        return patterned or (otherwise,) * count
    refuse_unless(len(given) == count, "layer_types", f"a list of {len(given)}", f"num_hidden_layers, {count}, entries")
    unknown = [each for each in given if each not in known]
    if unknown:
        raise ConfigError(f"layer_types has {unknown[0]!r}", expected=" or ".join(known), field="layer_types")
    refuse_unless(
        patterned in (None, tuple(given)), "sliding_window_pattern", every, "what layer_types lists, or no such field"
    )
    return tuple(given)


def _one_full_in(every: int, count: int) -> tuple[str, ...]:
    refuse_non_positive({"sliding_window_pattern": every})
    return tuple(SLIDING if layer % every else FULL for layer in range(1, count + 1))


def window_of(layer_type: str, sliding_window: int | None) -> int | None:
    """Give the tokens that a layer sees, None for all; raises ConfigError for a sliding layer without a window."""
    if layer_type == FULL:
        return None
    fine = sliding_window is not None and sliding_window > 0
    refuse_unless(fine, "sliding_window", sliding_window, "a positive number, since there are sliding layers")
    return sliding_window


def refuse_lonely_borrowers(layer_types: Sequence[str], borrowers: int) -> None:
    """Raise ConfigError where the last `borrowers` layers have none of their type before them to borrow from."""
    lenders = len(layer_types) - borrowers
    lend = set(layer_types[:lenders]) if borrowers >= 0 else set()
    fine = borrowers >= 0 and lend >= set(layer_types)
    before = f"a layer of each of layer_types' types before them, among {len(layer_types)}"
    refuse_unless(fine, "num_kv_shared_layers", borrowers, before)


def refuse_bidirectional(value: object) -> None:
    """Raise ConfigError for use_bidirectional_attention: an encoder, whose answers are no generating model's."""
    refuse_unless(not value, "use_bidirectional_attention", value, "false or null, for a model that generates")


def expert_count_field(content: Mapping[str, Any]) -> str:
    """Give the field that has the number of experts: `num_experts` or `num_local_experts`, as a config may say.

    Transformers 5 writes `num_local_experts` also for families whose first files say `num_experts`. Raises
    ConfigError when both are there and differ.
    """
    counts = {name: content[name] for name in ("num_experts", "num_local_experts") if name in content}
    if len(counts) == 2 and counts["num_experts"] != counts["num_local_experts"]:
        raise ConfigError(
            f"num_experts is {counts['num_experts']!r} and num_local_experts {counts['num_local_experts']!r}",
            expected="the same in both, or one of them",
            field="num_experts",
        )
    return next(iter(counts), "num_experts")


def refuse_too_many_chosen(chosen: int, experts: int, field: str, chosen_field: str = "num_experts_per_tok") -> None:
    """Raise ConfigError if a token would go to more experts than there are; `field` has their number."""
    refuse_unless(chosen <= experts, chosen_field, chosen, f"{field}, {experts}, at most")
