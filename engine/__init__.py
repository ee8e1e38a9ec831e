"""Rules, plans, bytes: the engine of weightloom. It knows tensors and names, no architecture.

The names below are imported on first use, so that a tool that needs one does not pay for all.
"""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.engine.checkpoints.checkpoint import Checkpoint as Checkpoint
    from weightloom.engine.errors import CheckpointError as CheckpointError
    from weightloom.engine.errors import ConfigError as ConfigError
    from weightloom.engine.errors import MissingExtra as MissingExtra
    from weightloom.engine.errors import NotInvertible as NotInvertible
    from weightloom.engine.errors import PlanError as PlanError
    from weightloom.engine.errors import PluginError as PluginError
    from weightloom.engine.errors import RuleError as RuleError
    from weightloom.engine.errors import StorageError as StorageError
    from weightloom.engine.errors import UsageError as UsageError
    from weightloom.engine.errors import WeightloomError as WeightloomError
    from weightloom.engine.mapping.claims import Absent as Absent
    from weightloom.engine.mapping.claims import Drop as Drop
    from weightloom.engine.mapping.claims import KeepDtype as KeepDtype
    from weightloom.engine.mapping.claims import Tie as Tie
    from weightloom.engine.mapping.converter import WeightConverter as WeightConverter
    from weightloom.engine.mapping.drop_layers import DropLayers as DropLayers
    from weightloom.engine.mapping.index_map import IndexMap as IndexMap
    from weightloom.engine.mapping.layer_renaming import LayerRenaming as LayerRenaming
    from weightloom.engine.mapping.prefix import PrefixChange as PrefixChange
    from weightloom.engine.mapping.rename_group import RenameGroup as RenameGroup
    from weightloom.engine.mapping.renaming import WeightRenaming as WeightRenaming
    from weightloom.engine.mapping.rule import Place as Place
    from weightloom.engine.mapping.rule import Rule as Rule
    from weightloom.engine.mapping.rule import Scope as Scope
    from weightloom.engine.mapping.ruleset import RuleSet as RuleSet
    from weightloom.engine.mapping.scope import ModuleNode as ModuleNode
    from weightloom.engine.mapping.scope import scoped_rules as scoped_rules
    from weightloom.engine.ops import Add as Add
    from weightloom.engine.ops import BitView as BitView
    from weightloom.engine.ops import BlockDiagonal as BlockDiagonal
    from weightloom.engine.ops import ChannelsFirst as ChannelsFirst
    from weightloom.engine.ops import ChannelsLast as ChannelsLast
    from weightloom.engine.ops import Chunk as Chunk
    from weightloom.engine.ops import Concatenate as Concatenate
    from weightloom.engine.ops import Conv3dToLinear as Conv3dToLinear
    from weightloom.engine.ops import ConversionOp as ConversionOp
    from weightloom.engine.ops import CutDiagonal as CutDiagonal
    from weightloom.engine.ops import DequantizeExperts as DequantizeExperts
    from weightloom.engine.ops import Divide as Divide
    from weightloom.engine.ops import Flatten as Flatten
    from weightloom.engine.ops import Interleave as Interleave
    from weightloom.engine.ops import LinearToConv3d as LinearToConv3d
    from weightloom.engine.ops import MergeModulelist as MergeModulelist
    from weightloom.engine.ops import Multiply as Multiply
    from weightloom.engine.ops import Pad as Pad
    from weightloom.engine.ops import Permute as Permute
    from weightloom.engine.ops import PermuteForRope as PermuteForRope
    from weightloom.engine.ops import Rearrange as Rearrange
    from weightloom.engine.ops import Reshape as Reshape
    from weightloom.engine.ops import ResidualGate as ResidualGate
    from weightloom.engine.ops import ResidualWeights as ResidualWeights
    from weightloom.engine.ops import Split as Split
    from weightloom.engine.ops import SplitModulelist as SplitModulelist
    from weightloom.engine.ops import Squeeze as Squeeze
    from weightloom.engine.ops import StackAcross as StackAcross
    from weightloom.engine.ops import Transpose as Transpose
    from weightloom.engine.ops import Unflatten as Unflatten
    from weightloom.engine.ops import Unpad as Unpad
    from weightloom.engine.ops import Unsqueeze as Unsqueeze
    from weightloom.engine.ops import UnstackAcross as UnstackAcross
    from weightloom.engine.plan import Plan as Plan
    from weightloom.engine.planning.adapter import Change as Change
    from weightloom.engine.planning.adapter import changes as changes
    from weightloom.engine.planning.adapter import plan_adapter as plan_adapter
    from weightloom.engine.planning.build import build_plan as build_plan
    from weightloom.engine.planning.describe import Row as Row
    from weightloom.engine.planning.describe import Step as Step
    from weightloom.engine.planning.fresh import save_plan as save_plan
    from weightloom.engine.planning.lifting import adapter_rules as adapter_rules
    from weightloom.engine.planning.report import LoadReport as LoadReport
    from weightloom.engine.planning.sharding import Sharding as Sharding
    from weightloom.engine.spec import TensorSpec as TensorSpec

_HOME = {
    "planning.adapter": ("Change", "changes", "plan_adapter"),
    "planning.build": ("build_plan",),
    "checkpoints.checkpoint": ("Checkpoint",),
    "mapping.claims": ("Absent", "Drop", "KeepDtype", "Tie"),
    "mapping.converter": ("WeightConverter",),
    "planning.describe": ("Row", "Step"),
    "mapping.drop_layers": ("DropLayers",),
    "errors": (
        "CheckpointError",
        "ConfigError",
        "MissingExtra",
        "NotInvertible",
        "PlanError",
        "PluginError",
        "RuleError",
        "StorageError",
        "UsageError",
        "WeightloomError",
    ),
    "planning.fresh": ("save_plan",),
    "planning.lifting": ("adapter_rules",),
    "mapping.index_map": ("IndexMap",),
    "mapping.layer_renaming": ("LayerRenaming",),
    "ops": (
        "BlockDiagonal",
        "Add",
        "BitView",
        "ChannelsFirst",
        "ChannelsLast",
        "Chunk",
        "Concatenate",
        "Conv3dToLinear",
        "ConversionOp",
        "CutDiagonal",
        "DequantizeExperts",
        "Divide",
        "Flatten",
        "Interleave",
        "LinearToConv3d",
        "MergeModulelist",
        "Multiply",
        "Pad",
        "Permute",
        "PermuteForRope",
        "Rearrange",
        "Reshape",
        "ResidualGate",
        "ResidualWeights",
        "Split",
        "SplitModulelist",
        "Squeeze",
        "StackAcross",
        "Transpose",
        "Unflatten",
        "Unpad",
        "Unsqueeze",
        "UnstackAcross",
    ),
    "plan": ("Plan",),
    "mapping.prefix": ("PrefixChange",),
    "mapping.rename_group": ("RenameGroup",),
    "mapping.renaming": ("WeightRenaming",),
    "planning.report": ("LoadReport",),
    "mapping.rule": ("Place", "Rule", "Scope"),
    "mapping.ruleset": ("RuleSet",),
    "mapping.scope": ("ModuleNode", "scoped_rules"),
    "planning.sharding": ("Sharding",),
    "spec": ("TensorSpec",),
}
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)

    def __dir__() -> list[str]:
        return __all__
