"""Surgery: named changes of values or sizes, put into a plan as steps and checked against headers alone."""

from weightloom.engine.surgery.donor import Donor
from weightloom.engine.surgery.glob import Glob
from weightloom.engine.surgery.interpolate import Interpolate
from weightloom.engine.surgery.operate import Operated, operate
from weightloom.engine.surgery.operation import Change, Operation
from weightloom.engine.surgery.prune_layers import PruneLayers
from weightloom.engine.surgery.prune_width import PruneChannels, PruneHeads
from weightloom.engine.surgery.replace import Replace
from weightloom.engine.surgery.scale import Add, Scale

__all__ = [
    "Add",
    "Change",
    "Donor",
    "Glob",
    "Interpolate",
    "Operated",
    "Operation",
    "PruneChannels",
    "PruneHeads",
    "PruneLayers",
    "Replace",
    "Scale",
    "operate",
]
