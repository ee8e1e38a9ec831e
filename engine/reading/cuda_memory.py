"""CUDA: fresh MLX arrays with the device addresses of their bytes, and pinned host buffers to fill them from.

MLX gives no device pointer away: its DLPack export moves an array to managed memory first. But a kernel is told
where its outputs are. The one here has two: an array of the wanted shape, which MLX allocates for this launch alone
and which nothing else knows, and a number, the array's address, which is all that the kernel writes.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

from weightloom.engine.dtypes import DTYPES
from weightloom.engine.errors import StorageError
from weightloom.engine.spec import TensorSpec

if TYPE_CHECKING:
    import mlx.core as mx

VARIABLE = "WEIGHTLOOM_PINNED"
_OTHERWISE = f"set {VARIABLE}=0 to load without pinned memory"
_KERNEL = "weightloom_address_of"
# Parallel Thread Execution ISA 6.3: compute capability 7.5 and later, compiled by the driver in no time.
_PTX = f"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry {_KERNEL}(.param .u64 data, .param .u64 place)
{{
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [data];
    ld.param.u64 %rd2, [place];
    cvta.to.global.u64 %rd3, %rd2;
    st.global.u64 [%rd3], %rd1;
    ret;
}}
"""


def cuda_available() -> bool:
    """Say whether MLX computes on CUDA, `cuda-bindings` is installed, and WEIGHTLOOM_PINNED is not 0."""
    import mlx.core as mx

    if os.environ.get(VARIABLE, "") == "0":
        return False
    if not mx.cuda.is_available() or mx.default_device() != mx.Device(mx.gpu):
        return False
    return importlib.util.find_spec("cuda") is not None and importlib.util.find_spec("cuda.bindings") is not None


def fresh_arrays(specs: Sequence[TensorSpec]) -> list[tuple[mx.array, int]]:
    """Make evaluated MLX arrays of these dtypes (MLX has them) and shapes, unfilled, each with its address.

    No two share a byte, and no work that touches them is under way. Raises StorageError where an address is not
    memory of the device.
    """
    import mlx.core as mx

    made = [_allocated(spec) for spec in specs]
    mx.eval([array for pair in made for array in pair])
    mx.synchronize()
    found = [(array, cast("int", address.item())) for array, address in made]
    check_apart([(address, array.nbytes) for array, address in found])
    for _, address in found:
        _check_on_device(address)
    return found


def _allocated(spec: TensorSpec) -> list[mx.array]:
    import mlx.core as mx

    assert spec.dtype is not None
    name = DTYPES[spec.dtype].mlx
    assert name is not None
    return mx.fast.precompiled_cuda_kernel(
        name=_KERNEL,
        compiled_source=_PTX.encode(),
        inputs=[],
        output_shapes=[spec.shape, (1,)],
        output_dtypes=[getattr(mx, name), mx.uint64],
        scalars=[],
        grid=(1, 1, 1),
        threadgroup=(1, 1, 1),
    )


def check_apart(ranges: Sequence[tuple[int, int]]) -> None:
    """Raise StorageError where two ranges (address, bytes) of the device share a byte."""
    for (start, nbytes), (following, _) in pairwise(sorted(ranges)):
        if start + nbytes > following:
            raise StorageError(
                "MLX gave two new arrays the same device memory",
                expected="memory of its own for each",
                hint=f"{_OTHERWISE}, and report this with the version of MLX",
            )


def _check_on_device(address: int) -> None:
    runtime = _runtime()
    attributes = checked(runtime.cudaPointerGetAttributes(address))
    kinds = runtime.cudaMemoryType
    # MLX takes what it freed before, which may be managed memory.
    if attributes.type not in (kinds.cudaMemoryTypeDevice, kinds.cudaMemoryTypeManaged):
        raise StorageError(
            "MLX gave a new array memory that is not the device's",
            expected="memory of a CUDA device",
            hint=f"{_OTHERWISE}, and report this with the version of MLX",
        )


class PinnedBuffer:
    """Page-locked host memory with a CUDA stream of its own."""

    def __init__(self, nbytes: int) -> None:
        import ctypes  # slow to import, and seldom needed

        self._runtime = _runtime()
        self._stream = checked(self._runtime.cudaStreamCreateWithFlags(self._runtime.cudaStreamNonBlocking))
        try:
            self._address: int = checked(self._runtime.cudaHostAlloc(nbytes, self._runtime.cudaHostAllocDefault))
        except StorageError:
            self._runtime.cudaStreamDestroy(self._stream)
            raise
        self._memory = memoryview((ctypes.c_ubyte * nbytes).from_address(self._address)).cast("B")

    @property
    def memory(self) -> memoryview:
        """The bytes, to be filled while nothing is on its way."""
        return self._memory

    def send(self, nbytes: int, address: int) -> None:
        """Start to copy the first bytes to an address of the device."""
        kind = self._runtime.cudaMemcpyKind.cudaMemcpyDefault
        checked(self._runtime.cudaMemcpyAsync(address, self._address, nbytes, kind, self._stream))

    def wait(self) -> None:
        """Wait until what was sent has arrived."""
        checked(self._runtime.cudaStreamSynchronize(self._stream))

    def close(self) -> None:
        """Wait, and give the memory back."""
        try:
            self.wait()
        finally:
            self._runtime.cudaStreamDestroy(self._stream)
            self._runtime.cudaFreeHost(self._address)


@cache
def _runtime() -> Any:
    return importlib.import_module("cuda.bindings.runtime")


def checked(answer: tuple[Any, ...]) -> Any:
    """Give what a call of the CUDA runtime answers; raises StorageError where it failed."""
    code, *values = answer
    if int(code) != 0:
        raise StorageError(
            f"CUDA refuses a copy: {code}",
            expected="a device with memory for the parameters",
            hint=f"free memory of the device or the host, or {_OTHERWISE}",
        )
    return values[0] if values else None
