"""What `import weightloom` gives."""

from weightloom.runtime.inspecting import inspect as inspect

__all__ = ["inspect"]
