"""Print how ways to fill MLX's arrays compare on CUDA: seconds, and the ratio to mlx-lm, for one checkpoint.

A Qwen3-MoE of 20 GB (16 layers, 128 experts, 6,291 tensors) is written, or a smaller one (`--scale`), and stays in
the page cache. Each way loads all parameters in fresh processes, in turn; a row is a median. Ways:

    host limit        reading all bytes into host memory, 16 threads
    plain             one virtual file after another (what weightloom does without cuda-bindings)
    several at once   the same on several threads, each with a stream of MLX's own
    pinned            through pinned buffers (what weightloom does with cuda-bindings)
    weightloom        weightloom.runtime.load, as a user calls it
    mx.load           the untouched files, evaluated
    mlx-lm, Transformers

With `--check` the bytes of each way's parameters are compared with those of the plain way (host memory for both).
Where MLX does not compute on CUDA there is nothing to measure, and the script ends with 0; with a `--scale` it runs
all the same, and the ways that need CUDA say so.
"""

import argparse
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

from support.checkpoints import Model, Sizes, qwen3_moe, write_model
from support.processes import Run, medians, resident_peak, run, say, took

ROUNDS = 5
MLX_LM, OURS = "mlx-lm", "weightloom"
MOST_SECONDS, LEAST_FASTER = 2.5, 2.0
_PIECE = 16 << 20
_AT_ONCE = 8
Job = Callable[[Path], object]


def model(scale: float) -> Model:
    """Give the checkpoint; layers and vocabulary shrink with the scale."""
    sizes = Sizes(max(1, round(16 * scale)), 2048, 6144, 32, 4, 128, max(1024, round(151936 * scale)))
    return qwen3_moe(sizes, 128, 768)


def host_limit() -> Job:
    """Read all weight files into host memory."""

    def job(folder: Path) -> object:
        import mmap

        files = [(path, mmap.mmap(-1, path.stat().st_size)) for path in sorted(folder.glob("*.safetensors"))]
        pieces = [
            (os.open(path, os.O_RDONLY), memoryview(memory)[at : at + _PIECE], at)
            for path, memory in files
            for at in range(0, len(memory), _PIECE)
        ]
        with ThreadPoolExecutor(16) as pool:
            list(pool.map(lambda piece: os.preadv(piece[0], [piece[1]], piece[2]), pieces))
        return files

    return job


def planned(folder: Path) -> Any:
    """Give the plan of a checkpoint, as the runtime makes it."""
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.runtime.opening.opening import open_path
    from weightloom.runtime.preparing.prepare import prepare

    return prepare(open_path(folder), manager=PluginManager()).plan


def everything(plan: Any) -> list[Any]:
    """Give all tensors that a plan of structural groups makes."""
    from weightloom.engine.reading.wanted import Cutter, moved

    return list(moved(plan, Cutter()))


def plain() -> Job:
    """Load with one virtual file after another."""
    from weightloom.engine.reading.fetch import fetching
    from weightloom.engine.reading.meter import Meter
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401

    def job(folder: Path) -> object:
        plan = planned(folder)
        with fetching(plan.checkpoint, 16, Meter(None, 0)) as fetch:
            return fetch.through_files(everything(plan))

    return job


def several_at_once() -> Job:
    """Load with virtual files on several threads; each thread makes a stream of its own."""
    import mlx.core as mx

    from weightloom.engine.reading.fetch import fetching
    from weightloom.engine.reading.meter import Meter
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401

    def job(folder: Path) -> object:
        plan = planned(folder)
        wanted = sorted(everything(plan), key=lambda each: -each.view.nbytes)
        shares = [wanted[n::_AT_ONCE] for n in range(_AT_ONCE)]
        with fetching(plan.checkpoint, 2, Meter(None, 0)) as fetch:

            def load(share: list[Any]) -> dict[str, Any]:
                with mx.stream(mx.new_stream(mx.default_device())):
                    return fetch.through_files(share)

            with ThreadPoolExecutor(_AT_ONCE) as pool:
                return {name: array for found in pool.map(load, shares) for name, array in found.items()}

    return job


def pinned() -> Job:
    """Load through pinned buffers."""
    from weightloom.engine.reading.cuda_memory import cuda_available
    from weightloom.engine.reading.fetch import fetching
    from weightloom.engine.reading.meter import Meter
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401

    if not cuda_available():
        raise SystemExit("no CUDA, or no cuda-bindings")

    def job(folder: Path) -> object:
        plan = planned(folder)
        with fetching(plan.checkpoint, None, Meter(None, 0)) as fetch:
            return fetch.arrays(everything(plan))

    return job


def weightloom() -> Job:
    """Load as a user does."""
    from weightloom.plugins.architectures import qwen3_moe as _  # noqa: F401
    from weightloom.runtime.loading.loading import load

    return lambda folder: load(folder).model


def mx_load() -> Job:
    """Load the files as they are, with MLX alone."""
    import mlx.core as mx

    def job(folder: Path) -> object:
        arrays = [mx.load(str(path)) for path in sorted(folder.glob("*.safetensors"))]
        mx.eval(arrays)
        return arrays

    return job


def mlx_lm() -> Job:
    """Load with mlx-lm."""
    utils = importlib.import_module("mlx_lm.utils")
    importlib.import_module("mlx_lm.models.qwen3_moe")
    return lambda folder: utils.load_model(folder)


def transformers() -> Job:
    """Load with Transformers, onto the device."""
    library = importlib.import_module("transformers")
    importlib.import_module("transformers.models.qwen3_moe.modeling_qwen3_moe")
    torch = importlib.import_module("torch")
    if not torch.cuda.is_available():
        raise SystemExit("torch sees no CUDA")
    return lambda folder: library.AutoModelForCausalLM.from_pretrained(folder, dtype="auto", device_map={"": 0})


JOBS: dict[str, Callable[[], Job]] = {
    "host limit": host_limit,
    "plain": plain,
    "several at once": several_at_once,
    "pinned": pinned,
    OURS: weightloom,
    "mx.load": mx_load,
    MLX_LM: mlx_lm,
    "Transformers": transformers,
}


def serve(name: str, folder: Path) -> NoReturn:
    """Be the fresh process: import, wake the device, run the job, print what it took."""
    job = JOBS[name]()
    _wake(name)

    def loaded() -> object:
        kept = job(folder)
        _synchronize(name)
        return kept

    say(took(loaded, resident_peak()))


def _wake(name: str) -> None:
    """Make the device's context, which the first work of a process pays for."""
    if name == "Transformers":
        importlib.import_module("torch").zeros(1, device="cuda")
    elif name != "host limit":
        import mlx.core as mx

        mx.eval(mx.zeros((1024, 1024)) + 1)


def _synchronize(name: str) -> None:
    if name == "Transformers":
        importlib.import_module("torch").cuda.synchronize()
    elif name != "host limit":
        import mlx.core as mx

        mx.synchronize()


def check(folder: Path) -> int:
    """Compare the bytes of the other ways with the plain way's; give how many parameters differ."""
    import mlx.core as mx

    plan = planned(folder)
    reference: Mapping[str, Any] = plain()(folder)  # type: ignore[assignment]
    differing = 0
    for name in ("several at once", "pinned"):
        try:
            found: Mapping[str, Any] = JOBS[name]()(folder)  # type: ignore[assignment]
        except SystemExit as reason:
            print(f"  {name}: not checked, {reason}")
            continue
        bad = [key for key in reference if not _same(mx, reference[key], found[key])]
        lacking = set(plan.params) ^ set(found)
        print(f"  {name}: {len(found)} parameters, {len(bad)} differ, {len(lacking)} lacking", flush=True)
        differing += len(bad) + len(lacking)
    return differing


def _same(mx: Any, first: Any, second: Any) -> bool:
    """Compare as integers, so that NaNs count; in parts, so that little memory is taken."""
    if first.shape != second.shape or first.dtype != second.dtype:
        return False
    integers = {1: mx.uint8, 2: mx.uint16, 4: mx.uint32, 8: mx.uint64}[first.dtype.size]
    return bool(mx.array_equal(first.view(integers), second.view(integers)).item())


def report(results: dict[str, Run | str]) -> str:
    """Write the table."""
    base = results.get(MLX_LM)
    lines = [f"{'way':<18}{'s':>8}{'x mlx-lm':>10}{'host peak GB':>14}"]
    for name, found in results.items():
        if isinstance(found, str):
            lines.append(f"{name:<18}{'-':>8}  {found}")
            continue
        ratio = f"{found.seconds / base.seconds:.2f}" if isinstance(base, Run) else "-"
        lines.append(f"{name:<18}{found.seconds:>8.2f}{ratio:>10}{found.peak / 1e9:>14.2f}")
    return "\n".join(lines)


def on_cuda() -> bool:
    """Say whether MLX computes on CUDA."""
    import mlx.core as mx

    return bool(mx.cuda.is_available())


def missed(results: dict[str, Run | str], scale: float) -> list[str]:
    """Name the targets that are missed; they are for the whole checkpoint on CUDA."""
    ours, base = results.get(OURS), results.get(MLX_LM)
    if scale != 1 or not on_cuda() or not isinstance(ours, Run):
        return []
    found = [] if ours.seconds <= MOST_SECONDS else [f"weightloom in at most {MOST_SECONDS:g} s"]
    if isinstance(base, Run) and base.seconds < LEAST_FASTER * ours.seconds:
        found.append(f"weightloom {LEAST_FASTER:g} times as fast as mlx-lm")
    return found


def main() -> int:
    """Write the checkpoint, check, measure, print; 1 when a target is missed or bytes differ."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--job")
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--scale", type=float, help="of the checkpoint; 1 unless told")
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--only", nargs="*", default=list(JOBS))
    arguments.add_argument("--check", action="store_true", help="compare bytes with the plain way")
    arguments.add_argument("--place", type=Path, help="write the checkpoint into this directory")
    asked = arguments.parse_args()
    if asked.job:
        serve(asked.job, asked.folder)
    if asked.scale is None and not on_cuda():
        print("device loading: MLX does not compute on CUDA here")
        return 0
    scale = asked.scale or 1.0
    made = model(scale)
    with tempfile.TemporaryDirectory(dir=asked.place) as name:
        folder = write_model(Path(name) / "model", made, 4 << 30)
        print(f"qwen3_moe, {len(made.shapes)} tensors, {made.nbytes / 1e9:.2f} GB", flush=True)
        differing = check(folder) if asked.check else 0
        script = Path(__file__).resolve()
        results = medians(asked.only, asked.rounds, lambda job: run(script, job, folder))
    print(report(results))
    targets = missed(results, scale)
    print("\n".join(f"missed: {target}" for target in targets), end="\n" if targets else "")
    return int(bool(targets) or differing > 0)


if __name__ == "__main__":
    sys.exit(main())
