"""Matrices stored (in, out), under any names: what is taken for something else is marked."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from tests.rules.proposals.spellings import SPELLINGS, Spelling
from weightloom.engine import TensorSpec
from weightloom.rules.proposing.proposal import Proposal
from weightloom.rules.proposing.propose import propose

Shapes = dict[str, tuple[int, ...]]
# What is turned of a name, and as what a tensor is taken: the parameter, and whether it is turned.
TURNED = ("nothing", "layers", "everything")
Taken = tuple[str, bool]


def llama(hidden: int, heads: int, keys: int, width: int, inner: int, vocab: int) -> Shapes:
    made: Shapes = {"model.embed_tokens.weight": (vocab, hidden), "model.norm.weight": (hidden,)}
    for layer in ("model.layers.0", "model.layers.1"):
        made |= {
            f"{layer}.self_attn.q_proj.weight": (heads * width, hidden),
            f"{layer}.self_attn.k_proj.weight": (keys * width, hidden),
            f"{layer}.self_attn.v_proj.weight": (keys * width, hidden),
            f"{layer}.self_attn.o_proj.weight": (hidden, heads * width),
            f"{layer}.mlp.gate_proj.weight": (inner, hidden),
            f"{layer}.mlp.up_proj.weight": (inner, hidden),
            f"{layer}.mlp.down_proj.weight": (hidden, inner),
            f"{layer}.input_layernorm.weight": (hidden,),
            f"{layer}.post_attention_layernorm.weight": (hidden,),
        }
    return made | {"lm_head.weight": (vocab, hidden)}


# Sizes that are often alike, so that much is square.
MODELS = st.builds(
    llama,
    st.sampled_from([32, 64]),
    st.sampled_from([2, 4]),
    st.sampled_from([1, 2]),
    st.sampled_from([8, 16, 32]),
    st.sampled_from([32, 64, 96]),
    st.sampled_from([64, 100]),
)


def is_turned(name: str, shape: tuple[int, ...], turned: str) -> bool:
    inside = turned == "everything" or (turned == "layers" and ".layers." in name)
    return inside and len(shape) == 2 and "embed" not in name


def taken_as(proposal: Proposal) -> Iterator[tuple[str, Taken]]:
    """Give what each tensor that no doubt is about is taken for, of those that one makes one."""
    for link in proposal.links:
        if len(link.sources) == len(link.targets) == 1 and not link.doubts:
            for index in link.sources[0].shapes:
                turned = any(op.name == "Transpose" for op in link.ops)
                yield link.sources[0].name(index), (link.targets[0].name(index), turned)


@given(MODELS, st.sampled_from(SPELLINGS), st.sampled_from(TURNED))
def test_what_is_not_marked_is_right(params: Shapes, spelling: Spelling, turned: str) -> None:
    truth: dict[str, Taken] = {}
    tensors: dict[str, TensorSpec] = {}
    for name, shape in params.items():
        way = is_turned(name, shape, turned)
        truth[spelling.spell(name)] = (name, way)
        tensors[spelling.spell(name)] = TensorSpec("F32", shape[::-1] if way else shape)
    proposal = propose(tensors, {name: TensorSpec("F32", shape) for name, shape in params.items()}, {})
    found = dict(taken_as(proposal))
    assert found == {name: truth[name] for name in found}
