"""weightloom: reversible checkpoint conversion rules for MLX, with architectures as plugins.

The names below load on first use, so that `import weightloom.engine` imports neither the runtime nor MLX.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from weightloom.runtime import embed as embed
    from weightloom.runtime import generate as generate
    from weightloom.runtime import generate_batch as generate_batch
    from weightloom.runtime import inspect as inspect
    from weightloom.runtime import load as load
    from weightloom.runtime import rerank as rerank
    from weightloom.runtime import save as save

__all__ = ["embed", "generate", "generate_batch", "inspect", "load", "rerank", "save"]

if not TYPE_CHECKING:  # keeps a misspelt `weightloom.name` a type error

    def __getattr__(name: str) -> object:
        """Import a public name from the runtime the first time it is asked for."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from weightloom import runtime

        value = globals()[name] = getattr(runtime, name)
        return value

    def __dir__() -> list[str]:
        """List the public names, loaded or not."""
        return sorted({*globals(), *__all__})
