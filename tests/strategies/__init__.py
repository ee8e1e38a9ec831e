"""Hypothesis strategies and the data that goes with them, shared by all tests; one file a subject."""

from tests.strategies.cases import OP_CONFIG as OP_CONFIG
from tests.strategies.cases import OpCase as OpCase
from tests.strategies.cases import flat as flat
from tests.strategies.chains import VALUE_OPS as VALUE_OPS
from tests.strategies.chains import op_cases as op_cases
from tests.strategies.moves import elements_of as elements_of
from tests.strategies.moves import move_programs as move_programs
from tests.strategies.moves import packed_bytes as packed_bytes
from tests.strategies.moves import share as share
from tests.strategies.names import ANY_NAMES as ANY_NAMES
from tests.strategies.names import NAME_LISTS as NAME_LISTS
from tests.strategies.names import RULE_LISTS as RULE_LISTS
from tests.strategies.names import SOURCES as SOURCES
from tests.strategies.names import name_rules as name_rules
from tests.strategies.steps import OP_STEPS as OP_STEPS
