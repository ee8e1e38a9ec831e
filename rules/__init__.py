"""Rule files: mapping data in YAML, with its schema, loader, registry and linter.

The names below are imported on first use: looking a name up reads no rule file but its own.
"""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.rules.linting.lint import Finding as Finding
    from weightloom.rules.linting.lint import lint_rules as lint_rules
    from weightloom.rules.loader import load_rules as load_rules
    from weightloom.rules.lookup import Registry as Registry
    from weightloom.rules.lookup import registry as registry
    from weightloom.rules.op_table import Ops as Ops
    from weightloom.rules.op_table import default_ops as default_ops
    from weightloom.rules.problems import RuleFileError as RuleFileError
    from weightloom.rules.sub_models import module_nodes as module_nodes

_HOME = {
    "Finding": "linting.lint",
    "Ops": "op_table",
    "Registry": "lookup",
    "RuleFileError": "problems",
    "default_ops": "op_table",
    "lint_rules": "linting.lint",
    "load_rules": "loader",
    "module_nodes": "sub_models",
    "registry": "lookup",
}

__all__ = [
    "Finding",
    "Ops",
    "Registry",
    "RuleFileError",
    "default_ops",
    "lint_rules",
    "load_rules",
    "module_nodes",
    "registry",
]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _HOME)

    def __dir__() -> list[str]:
        return __all__
