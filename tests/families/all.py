"""All families that come with the package; `python -m tests.oracle.families` compares them."""

from tests.families import llamas
from tests.families.family import Family

FAMILIES: tuple[Family, ...] = (*llamas.FAMILIES,)
