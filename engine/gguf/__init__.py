"""GGUF as a read-only source: the container, and its tensors in forms that MLX can use."""

from weightloom.engine.gguf.fields import Value as Value
from weightloom.engine.gguf.header import GgufTensor as GgufTensor
from weightloom.engine.gguf.opening import Gguf as Gguf
from weightloom.engine.gguf.opening import open_gguf as open_gguf
from weightloom.engine.gguf.opening import read_gguf as read_gguf
