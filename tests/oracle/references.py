"""Make the committed references: `python -m tests.oracle.references`, from the top of the repository.

The reference implementation says which files, names, dtypes and shapes a tiny model has; `tests/golden/make.py` fills
them with its own bytes; and the reference implementation loads what was written. That load is what is recorded.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from tests.golden.make import sha256, write_checkpoint
from tests.golden.reference import FOLDER, Node, Reference, reference_text
from tests.oracle import peer
from tests.oracle.models import CASES

# Each case once, the dtypes and numbers of files by turns: (dtype, sharded).
FORMS = {
    "mixtral": ("bfloat16", True),
    "qwen3_moe": ("float32", False),
    "qwen2_moe": ("float32", True),
    "llama": ("bfloat16", True),
    "llama_tied": ("float32", False),
    "mistral": ("bfloat16", False),
    "bert": ("float32", False),
    "bert_mlm": ("bfloat16", False),
    "bert_old": ("float32", True),
    "llava": ("bfloat16", False),
    "llava_old": ("bfloat16", True),
    "gemma3": ("bfloat16", True),
    "detr": ("float32", True),
    "detr_segmentation": ("bfloat16", False),
    "maskformer": ("float32", False),
}


def make_reference(name: str, folder: Path) -> Reference:
    """Make one reference; `folder` is empty and takes the files."""
    import transformers

    dtype, sharded = FORMS[name]
    case = CASES[name]
    peer.save_pretrained(name, dtype, sharded, folder / "model")
    shapes = {
        file: {tensor: spec for tensor, (spec, _) in held.items()}
        for file, held in peer.read_files(folder / "model").items()
    }
    files, index = write_checkpoint(peer.published_files(case, shapes), folder / "written")
    shutil.copy(folder / "model" / "config.json", folder / "written")
    model, info = peer.load(name, folder / "written")
    if peer.misfits(info):
        raise AssertionError(f"{name}: the reference implementation does not load what it should: {info}")
    params = {key: replace(peer.spec_of(t), sha256=sha256(peer.bytes_of(t))) for key, t in model.state_dict().items()}
    nodes = tuple(Node(node.path, node.class_name, node.model_type or "") for node in peer.nodes_of(model))
    config = peer.config_of(folder / "written")
    return Reference(
        case=name,
        transformers=transformers.__version__,
        base_model_prefix=model.base_model_prefix,
        nodes=nodes,
        config=config,
        index_sha256=index,
        files=files,
        params=dict(sorted(params.items())),
    )


def main() -> None:
    """Write all references anew."""
    for name in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            reference = make_reference(name, Path(folder))
        (FOLDER / f"{name}.json").write_text(reference_text(reference))
        print(f"{name}: {len(reference.params)} parameters, {len(reference.files)} files")


if __name__ == "__main__":
    main()
