"""The steps of a proposal, each against what can be said without it."""

from __future__ import annotations

from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from weightloom.engine import Checkpoint, TensorSpec, build_plan
from weightloom.rules.proposing.assigning import assigned
from weightloom.rules.proposing.checking import ruleset
from weightloom.rules.proposing.links import Link
from weightloom.rules.proposing.propose import propose
from weightloom.rules.proposing.relaying import relayings
from weightloom.rules.proposing.renaming import renames_of
from weightloom.rules.proposing.templates import templates_of
from weightloom.rules.proposing.together import siblings
from weightloom.rules.proposing.words import meaning

SCORES = st.integers(1, 4).flatmap(
    lambda columns: st.lists(
        st.lists(st.integers(0, 9).map(float), min_size=columns, max_size=columns), min_size=1, max_size=4
    )
)


def specs(**shapes: tuple[int, ...]) -> dict[str, TensorSpec]:
    return {name.replace("__", "."): TensorSpec("F32", shape) for name, shape in shapes.items()}


@given(SCORES)
def test_no_assignment_is_worth_more(scores: list[list[float]]) -> None:
    rows, columns = len(scores), len(scores[0])
    found = assigned(scores)
    taken = [column for column in found if column >= 0]
    assert len(found) == rows and len(set(taken)) == len(taken)
    places = [*range(columns), *([-1] * rows)]
    best = max(
        sum(scores[row][column] for row, column in enumerate(order) if column >= 0)
        for order in set(permutations(places, rows))
    )
    assert sum(scores[row][column] for row, column in enumerate(found) if column >= 0) == best


def test_numbers_are_indices_where_they_count_a_list() -> None:
    found = templates_of(specs(h__0__w=(2,), h__1__w=(2,), mlp__0__w=(2,), mlp__2__w=(3,), w1=(4,)))
    assert sorted(each.text for each in found) == ["h.*.w", "mlp.0.w", "mlp.2.w", "w1"]


def test_how_a_shape_becomes_another() -> None:
    def first(before: tuple[int, ...], after: tuple[int, ...]) -> list[str]:
        chain = next(relayings(frozenset({(before, after)})), None)
        return ["none"] if chain is None else [f"{op.name} {dict(op.arguments)}" for op in chain]

    assert first((2, 3), (2, 3)) == []
    assert first((2, 3), (3, 2)) == ["Transpose {'dim0': 0, 'dim1': 1}"]
    assert first((8, 4, 1), (8, 1, 4)) == ["ChannelsFirst {'channels': 1}"]
    assert first((1, 5), (5,)) == ["Squeeze {'dim': 0}"]
    assert first((4, 2, 3), (8, 3)) == ["Flatten {'start_dim': 0, 'end_dim': 1, 'sizes': [-1, 2]}"]
    assert first((2, 3), (2, 4)) == ["none"]


def test_words_mean_the_same_however_they_are_spelt() -> None:
    beside = frozenset[str]()
    assert meaning("wq", beside) == meaning("q_proj", beside) == meaning("query", beside) == ("q",)
    assert meaning("qConv1d", beside) == ("q", "conv")
    assert meaning("post_attention_layernorm", beside) == ("norm", "before", "mlp")
    assert meaning("post_attention_layernorm", frozenset({"pre_feedforward_layernorm"})) == ("norm", "post", "attn")


def renamed(*pairs: tuple[str, str]) -> tuple[dict[str, str], int]:
    """Give what becomes of each name by the renames that are made for the pairs, and how many these are."""
    sides = [templates_of({name: TensorSpec("F32", (2,)) for name in names}) for names in zip(*pairs, strict=True)]
    links = [Link((one,), (other,)) for one, other in zip(*sides, strict=True)]
    rules, lost = renames_of(links, sides[0])
    assert not lost
    plan = build_plan(Checkpoint.from_specs({one: TensorSpec("F32", (2,)) for one, _ in pairs}), ruleset(rules))
    return {group.sources[0]: group.targets[0] for group in plan.groups}, len(rules)


def test_a_rename_acts_where_it_should_and_nowhere_else() -> None:
    pairs = [("net.a.norm.w", "model.a.ln.w"), ("net.b.norm.w", "model.b.norm.w"), ("head.norm.w", "head.norm.w")]
    found, count = renamed(*pairs)
    assert found == dict(pairs) and count == 2


def test_names_that_move_up_do_not_run_into_each_other() -> None:
    pairs = [("a.norm0.w", "a.norm1.w"), ("a.norm1.w", "a.norm2.w")]
    found, _ = renamed(*pairs)
    assert found == dict(pairs)


def test_fused_rows_are_cut_and_marked() -> None:
    parameters = specs(q_proj__weight=(8, 6), k_proj__weight=(4, 6), v_proj__weight=(4, 6))
    found = propose(specs(qkv__weight=(16, 6)), parameters, {})
    (rule,) = found.rules
    assert rule.item["convert"]["ops"] == [{"Split": {"dim": 0, "sizes": [8, 4, 4]}}]
    assert any("grouped by head" in doubt for doubt in rule.doubts) and not found.settled


def test_two_that_cannot_be_told_apart_are_not_guessed_in_silence() -> None:
    found = propose(specs(x1__weight=(4,), x2__weight=(4,)), specs(input_layernorm__weight=(4,), norm__weight=(4,)), {})
    assert not found.settled
    assert {each.text for each in found.left} == {"x1.weight", "x2.weight"}
    assert found.candidates["x1.weight"] == ("input_layernorm.weight", "norm.weight")


def proposed_square(*beside: str) -> tuple[Link, ...]:
    """Propose for a square matrix in two layers, with others beside it, and tables of embeddings."""
    shapes = {"embed_tokens.weight": (9, 4), "layers.*.up_proj.weight": (6, 4), "layers.*.down_proj.weight": (4, 6)}
    wanted = {"layers.*.o_proj.weight": (4, 4), "embed_tokens.weight": (9, 4)} | {name: shapes[name] for name in beside}
    names = {name.replace("*", number): name for name in wanted for number in "01"}
    parameters = {name: TensorSpec("F32", wanted[each]) for name, each in names.items()}
    return propose({f"net.{name}": spec for name, spec in parameters.items()}, parameters, {}).doubtful


def test_a_square_matrix_is_marked_where_no_other_shows_how_matrices_lie() -> None:
    (link,) = proposed_square()
    assert link.sources[0].text == "net.layers.*.o_proj.weight" and "no shape says" in link.doubts[0]
    assert not proposed_square("layers.*.down_proj.weight")


def test_of_many_beside_each_other_not_all_pairs_are_tried() -> None:
    def tried(count: int) -> int:
        names = {f"layer{number}.q.weight": TensorSpec("F32", (4, 4)) for number in range(count)}
        return sum(1 for _ in siblings(templates_of(names), 2))

    assert tried(50) == 50 * 49 // 2
    assert tried(2000) == 0
