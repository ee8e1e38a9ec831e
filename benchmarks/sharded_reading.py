"""Print what each of two ranks reads of a checkpoint, by the process's own counter, over what it needs at least.

A Qwen3-MoE with three tensors an expert and a dense Llama are loaded by two processes in turn, each with one kind of
cut; all other parameters are replicated. A row is a kind: its share of the bytes, what the ranks read (rchar of
/proc/self/io, the load alone), and the ratio to half of the shardable bytes and all of the replicated ones. A cut by
rows whose runs are shorter than 64 KiB may read the whole, and has to say so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from support.checkpoints import Model, Sizes, llama, qwen3_moe, write_model

MOST = 0.51
EXPERTS = r"experts\.(gate_up|down)_proj$"
CUTS: dict[str, tuple[str, dict[str, str]]] = {
    "column": ("llama", {r"self_attn\.[qkv]_proj\.": "column", r"mlp\.(gate|up)_proj\.": "column"}),
    "vocab": ("llama", {r"^(model\.embed_tokens|lm_head)\.": "vocab"}),
    "expert": ("qwen3_moe", {EXPERTS: "expert"}),
    "packed": ("qwen3_moe", {r"experts\.gate_up_proj$": "packed"}),
    "row": ("llama", {r"self_attn\.o_proj\.": "row", r"mlp\.down_proj\.": "row"}),
    "row of experts": ("qwen3_moe", {r"experts\.down_proj$": "row"}),
}


@dataclass(frozen=True)
class Read:
    """What a rank read, the bytes of the parameters that are cut and of all, and the load's notes."""

    read: int
    shardable: int
    whole: int
    notes: list[str]

    @property
    def ratio(self) -> float:
        """Read, over half of the shardable bytes and all others."""
        return self.read / (self.shardable / 2 + self.whole - self.shardable)

    @property
    def met(self) -> bool:
        """Whether it read at most 0.51 of the shardable bytes and all others."""
        return self.read <= MOST * self.shardable + self.whole - self.shardable


def models(scale: float) -> dict[str, Model]:
    """Give the checkpoints, of 1.6 GB each at scale 1."""
    moe = Sizes(max(1, round(5 * scale)), 1024, 3072, 16, 4, 64, 32000)
    dense = Sizes(max(1, round(15 * scale)), 2048, 5632, 32, 32, 64, 16000)
    return {"qwen3_moe": qwen3_moe(moe, 128, 384), "llama": llama(dense)}


def read_counter() -> int:
    """Give the bytes that this process has read so far. Linux only."""
    lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    return int(dict(line.split(": ") for line in lines)["rchar"])


def load(folder: Path, cut: str, rank: int) -> None:
    """Be one rank: load, and print what was read."""
    from weightloom.engine import Sharding
    from weightloom.engine.reading.read_bytes import reading_notes
    from weightloom.plugins.discovery.manager import PluginManager
    from weightloom.runtime.opening.opening import open_path
    from weightloom.runtime.preparing.prepare import prepare

    plan = prepare(open_path(folder), manager=PluginManager()).plan
    sharding = Sharding(rank, 2, CUTS[cut][1])  # type: ignore[arg-type]
    specs = {name: spec for group in plan.groups for name, spec in group.made}
    shardable = sum(spec.nbytes for name, spec in specs.items() if sharding.kind_of(name) != "replicate")
    # What MLX imports and wakes is no part of the load.
    import mlx.core as mx

    mx.eval(mx.zeros(1))
    before = read_counter()
    kept = plan.load(sharding)
    read = read_counter() - before
    print(json.dumps([read, shardable, plan.nbytes, reading_notes(plan, sharding)]), flush=True)
    assert kept
    os._exit(0)


def rank_of(folder: Path, cut: str, rank: int) -> Read:
    """Run one rank in a fresh process."""
    command = [
        sys.executable,
        str(Path(__file__).resolve()),
        "--folder",
        str(folder),
        "--cut",
        cut,
        "--rank",
        str(rank),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return Read(*json.loads(done.stdout.splitlines()[-1]))


def main() -> int:
    """Measure and print; 1 when a rank reads too much, or more than its part without a word."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--folder", type=Path)
    arguments.add_argument("--cut")
    arguments.add_argument("--rank", type=int)
    arguments.add_argument("--scale", type=float, default=1.0)
    asked = arguments.parse_args()
    if asked.cut:
        load(asked.folder, asked.cut, asked.rank)
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        folders = {kind: write_model(Path(name) / kind, model) for kind, model in models(asked.scale).items()}
        print(f"{'cut by, MB':<22}{'shardable':>11}{'rank 0':>9}{'rank 1':>9}{'ratio':>8}  target: {MOST} of shardable")
        for cut, (kind, _) in CUTS.items():
            ranks = [rank_of(folders[kind], cut, rank) for rank in range(2)]
            met = all(rank.met or (cut.startswith("row") and rank.notes) for rank in ranks)
            missed += not met
            figures = "".join(f"{rank.read / 1e6:>9.0f}" for rank in ranks)
            verdict = "ok" if all(rank.met for rank in ranks) else "reads more, and says so" if met else "missed"
            worst = max(rank.ratio for rank in ranks)
            print(f"{cut:<22}{ranks[0].shardable / 1e6:>11.0f}{figures}{worst:>8.3f}  {verdict}", flush=True)
            for note in {note for rank in ranks for note in rank.notes}:
                print(f"    {note}")
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
