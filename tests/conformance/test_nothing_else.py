"""The kit tries every architecture that comes with the package, and no other test tries what it tries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.families.all import FAMILIES
from tests.guards import ROOT, imported_names
from weightloom.plugins import PluginManager
from weightloom.plugins.architecture import OURS
from weightloom.runtime.conformance.subject import architecture_of

PLUGINS = ROOT / "tests" / "plugins"
# Tests of one architecture by its name, and what of it the kit does not know.
OF_ONE = {
    "test_bert.py": "segments, the pooler, and a head that is kept for saving",
    "test_embedding_gemma2.py": "the half of a whole, and sizes of single layers",
    "test_exaone4.py": "which layers have windows, by each way to say so",
    "test_gpt2.py": "that there are no positions beyond the last",
    "test_mamba2.py": "the mixer, a shared layer, against its formula",
    "test_mpnet.py": "the buckets of distances, against their formula",
    "test_nemotron_h.py": "what each layer is, by each way to say so",
    "test_nemotron_nas.py": "what is read of each block",
    "test_plamo2.py": "which layers attend, and windows that its reference lacks",
}
# What a test of an architecture's own would call to try a law again, and the law.
TRIES = {
    "make_cache": "the_cache_changes_nothing",
    ".padding = ": "padding_in_front_changes_nothing",
    "lazy=": "lazy_is_eager",
    ".save(": "a_save_is_what_was_read",
    "Order(": "other_layouts_lead_back",
    "quantize(": "packed_answers_are_those_of_the_matrices",
    "quantize=": "packing_on_load_packs_the_same",
    "Sharding(": "shards_add_up",
}
# Of tests beside the kit that name an architecture: what they call such for.
ANOTHER_SUBJECT = {
    "test_bert.py": "a head that the model does not use is saved back",
    "test_decoders.py": "which kind of cut each parameter has",
    "test_gpt2.py": "the cache knows that the last position was reached",
    "test_latent_halves.py": "halves that are packed each in its own way",
    "test_lora.py": "adapters beside what is packed",
    "test_real_gated_recurrence.py": "one layer against its formula",
    "test_sources.py": "containers of a package",
    "test_state.py": "what a cache of two kinds hands on",
    "test_quantized.py": "how modules are replaced, and what cannot be",
}


def test_every_architecture_has_a_family() -> None:
    manager = PluginManager()
    offered = [each for model_type in manager.model_types() for each in manager.architectures(model_type)]
    shipped = {each.name for each in offered if each.source == OURS}
    tried = {architecture_of(family.config(case)).name for family in FAMILIES for case in family.cases}
    assert shipped and shipped - tried == set(), "each needs a case in tests/families"


def test_a_test_of_one_architecture_says_what_the_kit_does_not_know_of_it() -> None:
    architectures = {file.stem for file in (ROOT / "plugins" / "architectures").glob("*.py")}
    found = {file.name for file in PLUGINS.glob("test_*.py") if file.stem.removeprefix("test_") in architectures}
    assert found == set(OF_ONE)


def test_what_the_kit_tries_is_not_tried_beside_it() -> None:
    found = {file.name: laws for file in PLUGINS.glob("test_*.py") if (laws := list(tried_again(file)))}
    assert {name: laws for name, laws in found.items() if name not in ANOTHER_SUBJECT} == {}
    assert set(ANOTHER_SUBJECT) - set(found) == set()


def tried_again(file: Path) -> Iterator[str]:
    """Give the laws that a test which names an architecture may try again."""
    text = file.read_text(encoding="utf-8")
    own = ("weightloom.plugins.architectures", "tests.families", "tests.plugins.tiny")
    if any(name.startswith(own) for name in imported_names(text)):
        yield from (law for word, law in TRIES.items() if word in text)
