"""Doubting: what headers cannot show, said of every tensor that it may concern."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from weightloom.rules.proposing.links import Link, OpCall
from weightloom.rules.proposing.templates import Template

# Names under which rotary pairs lie in neighbouring rows, where the parameters have them in two halves of a head.
_NEIGHBOURS = {"wq": "num_attention_heads", "attn_q": "num_attention_heads"} | {
    "wk": "num_key_value_heads",
    "attn_k": "num_key_value_heads",
}
_ROTARY = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}

_NOTHING_SHOWS = "it is square, and so are all matrices beside it: no shape says whether they are turned"


def doubted(links: Sequence[Link], config: Mapping[str, Any], known: Mapping[str, str]) -> tuple[Link, ...]:
    """Give the links with what may be otherwise, and what is likelier put in its place.

    `known` is what may be otherwise with parameters in other layouts, by their names; it is left out where every name
    and shape is the parameter's, as it is in the layout that the parameters are named for.
    """
    found = [_rotary(_square(link, links), config) for link in links]
    if all(link.same for link in found):
        return tuple(found)
    return tuple(_known(_scaled(_unseen(link, found), config), known) for link in found)


def remarks(links: Iterable[Link], beyond: Sequence[Template]) -> tuple[str, ...]:
    """Say what is true of the proposal as a whole; `beyond` is what has numbers that no parameter has."""
    found = ["headers show names and shapes, not values: compare the answers of the model with known ones"]
    if any(_is_square(link) for link in links):
        found.append("a square matrix may be turned without its shape saying so")
    if beyond:
        where = f"{beyond[0].name(min(beyond[0].shapes))} and others"
        found.append(f"{where} have numbers that no parameter has; layers to do without are left out by `drop_layers`")
    return tuple(found)


def _turn_of(link: Link) -> tuple[int, OpCall] | None:
    """Give how many axes a matrix has that a link turns, and the op."""
    turns = (op for op in link.ops if op.name == "Transpose")
    op = next(turns, None)
    return None if op is None else (len(link.targets[0].example), op)


def _is_square(link: Link) -> bool:
    shape = link.sources[0].example
    return link.plain and len(shape) >= 2 and shape[-1] == shape[-2]


def _square(link: Link, links: Sequence[Link]) -> Link:
    """Turn a square matrix where those beside it are turned; say that its shape does not show it."""
    if not _is_square(link):
        return link
    own = link.sources[0]
    turned = [(each.sources[0], found) for each in links if (found := _turn_of(each)) is not None]
    alike = [(source, op) for source, (rank, op) in turned if rank == len(own.example)]
    if not alike:
        return link
    near = next((op for source, op in alike if _block(source)[:1] == _block(own)[:1] and _block(own)), None)
    doubt = "it is square, and other matrices of this file are turned: its shape does not say whether it is"
    return replace(link, ops=() if near is None else (near,)).doubting(doubt)


def _unseen(link: Link, links: Sequence[Link]) -> Link:
    """Doubt a square matrix where no other one shows how matrices lie in this file."""
    if not _is_square(link) or link.doubts:
        return link
    shown = any(_shows_its_axes(each, len(link.sources[0].example)) for each in links)
    return link if shown else link.doubting(_NOTHING_SHOWS)


def _shows_its_axes(link: Link, rank: int) -> bool:
    """Say whether a matrix in layers lies, without a doubt, as the parameters do, and could not be turned unseen.

    A table of embeddings does not show it: it has a row a token however matrices lie.
    """
    shape = link.sources[0].example
    sure = bool(_block(link.sources[0])) and not link.doubts and _turn_of(link) is None
    return sure and len(shape) == rank and shape[-1] != shape[-2]


def _block(template: Template) -> tuple[str, ...]:
    """Give the path to the last number: the layer that a tensor is in."""
    stars = [place for place, part in enumerate(template.parts) if part == "*"]
    return template.parts[: stars[-1] + 1] if stars else ()


def _rotary(link: Link, config: Mapping[str, Any]) -> Link:
    """Doubt queries and keys under another name: their rows may be in another order for the rotary embedding."""
    targets = {target.module[-1] for target in link.targets}
    heads = next((_ROTARY[name] for name in sorted(targets, reverse=True) if name in _ROTARY), None)
    if heads is None or all(source.module[-1] in _ROTARY for source in link.sources):
        return link
    doubt = "rows of queries and keys may be in another order for the rotary embedding (PermuteForRope)"
    field = heads if config.get(heads) is not None else "num_attention_heads"
    if link.plain and link.sources[0].module[-1] in _NEIGHBOURS and config.get(field) is not None:
        return replace(link, ops=(OpCall("PermuteForRope", {"heads": field}),)).doubting(doubt)
    return link.doubting(doubt)


def _scaled(link: Link, config: Mapping[str, Any]) -> Link:
    """Doubt values where the config has factors that some layouts hold in the weights."""
    factors = sorted(key for key, value in config.items() if _is_factor(key, value))
    if not factors:
        return link
    return link.doubting(f"a layout may hold the config's factors in its weights ({', '.join(factors[:3])})")


def _is_factor(key: str, value: object) -> bool:
    """Tell a field of factors of which one at least is not 1."""
    if not key.endswith(("_multiplier", "_multipliers")):
        return False
    return any(each != 1 for each in (value if isinstance(value, list) else [value]) if each is not None)


def _known(link: Link, known: Mapping[str, str]) -> Link:
    found = {known[name] for target in link.targets for name in target.names if name in known}
    for doubt in sorted(found):
        link = link.doubting(doubt)
    return link
