"""What is compared: every key of the reference implementation's registry, plain families, and variants of some."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.oracle.all_keys.changes import VARIANTS

# Families without rules there; what ties and drops they have is ours.
FAMILIES = (
    *("bert", "clip", "colqwen2", "detr", "ernie4_5", "exaone", "exaone4", "falcon_mamba", "florence2", "gemma"),
    *("gemma2", "gemma3", "gemma3_text", "gemma3n", "gemma3n_text", "glm4", "gpt_oss", "hunyuan_v1_dense", "idefics3"),
    *("internlm3", "jamba", "llama", "llama4", "llama4_text", "llava", "mamba", "mamba2", "minimax", "ministral3"),
    *("mistral", "modernbert", "nemotron_h", "olmo2", "olmoe", "paligemma", "phi", "phi3", "qwen2", "qwen2_5_vl"),
    *("qwen2_vl", "qwen3", "qwen3_next", "qwen3_vl", "recurrent_gemma", "roberta", "rt_detr_v2", "siglip"),
    *("whisper", "xlm-roberta"),
)

# Keys that name no model of the reference implementation.
DEAD = {
    "PPChart2TableModel": "there is no such class; pp_chart2table is a GotOcr2 model",
    "mlcd_vision": "no config has this model type; the config says mlcd_vision_model",
    "xCLIPTextModel": "the class is spelt XCLIPTextModel",
    "xCLIPVisionModel": "the class is spelt XCLIPVisionModel",
}
# It takes its layers from the file of another model, and is never built alone.
MTP = "MtpModel"


@dataclass(frozen=True, slots=True, order=True)
class Job:
    """One model to compare: a key, perhaps with a variant of its config."""

    key: str
    variant: str = ""

    def __str__(self) -> str:
        return f"{self.key}#{self.variant}" if self.variant else self.key


@cache
def registered() -> tuple[str, ...]:
    """The keys of the reference implementation's registry, from a file: tests are listed without it."""
    return tuple((Path(__file__).parent / "keys.txt").read_text().split())


@cache
def mapping() -> dict[str, list[Any]]:
    """The reference implementation's transforms by key, legacy names left out."""
    from transformers import conversion_mapping

    found: dict[str, list[Any]] = dict(conversion_mapping._build_checkpoint_conversion_mapping())  # type: ignore[no-untyped-call]
    found.pop("legacy")
    return found


def jobs(only: Iterable[str] = ()) -> list[Job]:
    """List all jobs, or those of some keys (`key#variant` for one variant)."""
    keys = sorted({*registered(), *FAMILIES, *VARIANTS}, key=lambda key: (key.lower(), key))
    found = [Job(key, variant) for key in keys for variant in ("", *VARIANTS.get(key, ()))]
    wanted = set(only)
    return [job for job in found if not wanted or {job.key, str(job)} & wanted]
