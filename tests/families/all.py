"""All families that come with the package; `python -m tests.oracle.families` compares them."""

from tests.families import (
    dense_a,
    dense_b,
    encoders,
    experts_a,
    experts_b,
    gemmas,
    headless,
    llamas,
    recurrent,
    state_space,
)
from tests.families.family import Family

FAMILIES: tuple[Family, ...] = (
    *dense_a.FAMILIES,
    *dense_b.FAMILIES,
    *encoders.FAMILIES,
    *experts_a.FAMILIES,
    *experts_b.FAMILIES,
    *gemmas.FAMILIES,
    *headless.FAMILIES,
    *llamas.FAMILIES,
    *recurrent.FAMILIES,
    *state_space.FAMILIES,
)
