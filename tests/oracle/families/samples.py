"""A family's cases as samples of the conformance kit whose checkpoint and answers are the reference's."""

from dataclasses import replace
from functools import partial

from tests.families.family import Case, Family
from tests.families.samples import sample_of
from tests.oracle.families import peers
from tests.oracle.families.relaying import RELAYINGS
from weightloom.plugins.testing import Sample


def referenced(family: Family, case: Case) -> Sample:
    """Give a case that the reference writes and answers, with configs as Transformers 5 and 4 write them."""
    in_its_own_layout = family.peer == "mlx_lm" and family.model_type not in RELAYINGS
    by, sample = family.relaid or family.class_name or family.peer, sample_of(family, case)
    return replace(
        sample,
        name=f"{by}, {sample.name}",
        checkpoint=partial(peers.write, family, case),
        reference=partial(peers.answers, family),
        spellings=(partial(peers.as_published, family),),
        layout="mlx" if in_its_own_layout else "hf",
    )
