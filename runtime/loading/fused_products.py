"""Whether a model that was loaded computes products on one input as one: as asked, else where it runs on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from weightloom.runtime.loading.materializing import Mode

if TYPE_CHECKING:
    import mlx.nn as nn


def fuse_products(module: nn.Module, fuse: bool | None, mode: Mode, towers: Sequence[str], alone: bool) -> None:
    """Fuse what can be, unless it is not to be; towers, which may never be read, are left alone.

    On a GPU, what is done for one token is compiled too, where the module is `alone`: without adapters, which are
    switched between calls, and without other ranks, with which it exchanges.
    """
    import mlx.core as mx

    from weightloom.plugins.modules.fusing import compile_steps
    from weightloom.plugins.modules.fusing import fuse as fuse_all

    # On the CPU, compiling asks for a C++ compiler on the machine that runs the model.
    on_gpu = mx.default_device() == mx.Device(mx.gpu)
    if mode == "lazy" or not (on_gpu if fuse is None else fuse):
        return
    fuse_all(module, apart=towers if mode == "needed" else ())
    if alone and on_gpu:
        compile_steps(module)
