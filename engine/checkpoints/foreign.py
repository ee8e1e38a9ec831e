"""Files that people take for safetensors: what they are, by their first bytes or by their suffix."""

from __future__ import annotations

_STARTS = (
    (b"version https://git-lfs", "it is a Git LFS pointer, not the file: run `git lfs pull`"),
    (b"GGUF", "it is a GGUF file, not safetensors"),
    (b"PK\x03\x04", "it is a zip archive, as torch.save writes: convert it to safetensors first"),
    (b"\x80", "it looks like a pickle, which is never read: convert it to safetensors first"),
    (b"\x89HDF", "it is an HDF5 file: convert it to safetensors first"),
    (b"\x93NUMPY", "it is a NumPy file: convert it to safetensors first"),
    (b"<", "it looks like a web page, not the file: download it again"),
    (b"{", "it is JSON, not safetensors"),
)

FOREIGN_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".gguf", ".h5", ".msgpack", ".npz", ".onnx")


def foreign_hint(head: bytes) -> str | None:
    """Say what a file is whose first bytes are `head`, or None when nothing is known of it."""
    return next((hint for start, hint in _STARTS if head.startswith(start)), None)
