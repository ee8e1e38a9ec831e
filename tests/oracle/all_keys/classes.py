"""Which class of the reference implementation stands for a key: a class name, or a config's model type."""

from __future__ import annotations

import importlib
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# The first of these that there is, shortest name first.
_HEADS = (
    *("ForConditionalGeneration", "ForCausalLM", "LMHeadModel", "ForObjectDetection", "ForInstanceSegmentation"),
    *("ForUniversalSegmentation", "ForRetrieval", "ForPreTraining", "ForMaskedLM", "Model", "ForImageClassification"),
)


@dataclass(frozen=True, slots=True)
class Pick:
    """A model class by name, with the folder and name of a config that is not the class's own."""

    class_name: str
    config: tuple[str, str] | None = None


# Model types whose class has a config of another type, or several classes to choose from.
_PICKS = {
    "exaone": Pick("LlamaForCausalLM", ("exaone", "ExaoneConfig")),
    "gemma3": Pick("Gemma3ForConditionalGeneration"),
    "gemma3_text": Pick("Gemma3ForCausalLM"),
    "internlm3": Pick("LlamaForCausalLM", ("internlm3", "InternLM3Config")),
    "mlcd": Pick("MLCDVisionModel"),
    "pp_chart2table": Pick("GotOcr2ForConditionalGeneration", ("pp_chart2table", "PPChart2TableConfig")),
    "sarvam_mla": Pick("DeepseekV3ForCausalLM", ("sarvam_mla", "SarvamMLAConfig")),
    "sarvam_moe": Pick("Glm4MoeForCausalLM", ("sarvam_moe", "SarvamMoEConfig")),
}


def pick(key: str) -> Pick | None:
    """Choose the class for a key; None where the reference implementation has none."""
    if key in _PICKS:
        return _PICKS[key]
    if key in _modules_by_class():
        return Pick(key)
    names = sorted(_classes_of(key), key=_rank)
    return Pick(names[0]) if names else None


def class_named(name: str) -> Any:
    """Import a model class."""
    return getattr(importlib.import_module(_modules_by_class()[name][0]), name)


def config_class(folder: str, name: str) -> Any:
    """Import a config class."""
    return getattr(importlib.import_module(f"transformers.models.{folder}.configuration_{folder}"), name)


def _rank(name: str) -> tuple[int, int]:
    return next((place for place, end in enumerate(_HEADS) if name.endswith(end)), len(_HEADS)), len(name)


def _classes_of(model_type: str) -> list[str]:
    """All model classes whose own config is of a type."""
    folders = _folders_by_type().get(model_type, ())
    modules = {name: modules for name, modules in _modules_by_class().items() if not name.endswith("PreTrainedModel")}
    return [
        name
        for name, places in modules.items()
        if any(place.split(".")[2] in folders and _is_of(place, name, model_type) for place in places)
    ]


def _is_of(module: str, name: str, model_type: str) -> bool:
    from transformers import PreTrainedModel

    found: Any = getattr(importlib.import_module(module), name, None)
    is_model = isinstance(found, type) and issubclass(found, PreTrainedModel)
    return is_model and getattr(found.config_class, "model_type", None) == model_type


def _sources(kind: str) -> list[Path]:
    import transformers

    return sorted((Path(transformers.__file__).parent / "models").glob(f"*/{kind}_*.py"))


@cache
def _modules_by_class() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path in _sources("modeling"):
        module = f"transformers.models.{path.parent.name}.{path.stem}"
        for name in re.findall(r"^class (\w+)\(", path.read_text(), re.M):
            found[name] = (*found.get(name, ()), module)
    return found


@cache
def _folders_by_type() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for path in _sources("configuration"):
        for name in re.findall(r'model_type(?:\s*:\s*[\w\[\]. ]+)?\s*=\s*"([^"]+)"', path.read_text()):
            found[name] = (*found.get(name, ()), path.parent.name)
    return found
