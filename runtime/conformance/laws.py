"""The laws, each a function that asserts, with what it measures and which samples it spares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weightloom.runtime.conformance import configs, loading, packed, running, saving, spelling
from weightloom.runtime.conformance.rulefiles import the_linter_finds_nothing
from weightloom.runtime.conformance.subject import Subject


def _none(subject: Subject) -> bool:
    return False


@dataclass(frozen=True)
class Law:
    """What every sample must hold but those that it `spares`, for the reason `why`.

    `check` raises AssertionError where the law does not hold. What it gives is the largest difference that it found, of
    what `measures` says.
    """

    check: Callable[[Subject], float | None]
    measures: str = ""
    spares: Callable[[Subject], bool] = _none
    why: str = ""

    @property
    def name(self) -> str:
        """The name of the function that checks it."""
        return self.check.__name__


def _generates(subject: Subject) -> bool:
    return subject.architecture.task == "generate"


def _does_not_generate(subject: Subject) -> bool:
    return not _generates(subject)


OF_CONFIGS = (
    Law(configs.it_is_found_by_every_model_type),
    Law(configs.every_wrong_field_is_named),
    Law(the_linter_finds_nothing),
)
OF_REFUSALS = (
    Law(loading.a_lacking_tensor_is_named),
    Law(loading.a_stranger_is_named),
    Law(loading.a_wrong_shape_is_named),
)
OF_LOADING = (
    Law(
        loading.parameters_are_as_written,
        spares=lambda subject: subject.written is None,
        why="the kit did not write it; elements_are_those_of_the_files says as much",
    ),
    Law(loading.elements_are_those_of_the_files),
    Law(loading.inference_is_exact),
    Law(loading.lazy_is_eager),
    Law(
        loading.shards_add_up,
        spares=lambda subject: not subject.architecture.sharding,
        why="it has no sharding plan",
    ),
)
OF_SAVING = (
    Law(
        saving.published_names_are_written,
        spares=lambda subject: not subject.sample.published or subject.written is None,
        why="the sample says no names for what is generated",
    ),
    Law(saving.a_save_is_what_was_read),
    Law(saving.the_inverse_of_the_inverse_is_the_plan),
    Law(saving.other_layouts_lead_back),
    Law(saving.the_canonical_form_is_the_same),
)
OF_ANSWERS = (
    Law(
        running.the_reference_agrees,
        measures="whole",
        spares=lambda subject: subject.sample.reference is None,
        why="the sample has no reference",
    ),
    Law(running.the_cache_changes_nothing, "cached", _does_not_generate, "it does not generate"),
    Law(running.padding_changes_nothing, "padded", _generates, "padding is in front of what generates"),
    Law(packed.packed_answers_are_those_of_the_matrices, measures="4 bits"),
    Law(
        spelling.other_spellings_say_the_same,
        measures="spelt",
        spares=lambda subject: not subject.sample.spellings,
        why="the sample has one form of its config",
    ),
)
OF_RUNNING = (
    Law(packed.packing_on_load_packs_the_same),
    Law(running.rows_do_not_see_each_other),
    Law(running.the_dtype_is_kept),
    Law(running.padding_in_front_changes_nothing, "", _does_not_generate, "it does not generate"),
    Law(running.later_tokens_change_nothing, "", _does_not_generate, "it does not generate"),
)

LAWS = (*OF_CONFIGS, *OF_REFUSALS, *OF_LOADING, *OF_SAVING, *OF_ANSWERS, *OF_RUNNING)
# Those that files or answers of somebody else can settle.
AGREEMENT = (*OF_LOADING, *OF_SAVING, *OF_ANSWERS)
