"""Optional parts, asked for by name before work that needs them is begun."""

from __future__ import annotations

from weightloom.engine.errors import MissingExtra


def need_mlx() -> None:
    """Raise MissingExtra, with the import's own error behind it, when MLX or its back end cannot be loaded."""
    try:
        import mlx.core  # noqa: F401
    except ImportError as error:
        raise MissingExtra(
            f"MLX cannot be loaded: {error}",
            expected="mlx with a back end",
            hint="on Linux: pip install 'weightloom[cpu]' or 'weightloom[cuda13]'",
        ) from error
