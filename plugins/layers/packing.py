"""How a matrix is packed: MLX's quantization as a value, for layers that hold packed matrices."""

from weightloom.engine.quantizing.quantization import Quantization as Quantization
