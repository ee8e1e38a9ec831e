"""What Transformers unpacks, casts or drops: packed experts, prediction layers, dtypes, metadata, unknown tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.laws.worlds import Tensor, tensor
from tests.rules.checkpoints import Held, Layout, comes_back, comes_back_and_is_written, model_rules
from weightloom.engine import RuleSet

FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [2, 2]}}


def stacked(parts: list[Tensor], axis: int | None = None) -> Tensor:
    """Stack one-byte or four-byte tensors, or join them along an axis of stacks."""
    width = np.dtype(f"u{len(parts[0].data) // int(np.prod(parts[0].shape))}")
    arrays = [np.frombuffer(part.data, width).reshape(part.shape) for part in parts]
    joined = np.stack(arrays) if axis is None else np.concatenate(arrays, axis)
    return Tensor(parts[0].dtype, joined.shape, np.ascontiguousarray(joined).tobytes())


def fp8_experts(published: str, parameter: str, names: tuple[str, str, str]) -> tuple[Held, Held]:
    """Three experts of F8 rows with F32 scales, (published, as parameters)."""
    file: Held = {}
    stacks: dict[str, dict[str, Tensor]] = {}
    shapes = {names[0]: (4, 6), names[1]: (4, 6), names[2]: (6, 4)}
    for end, dtype, block in (("", "F8_E4M3", 1), ("_scale_inv", "F32", 2)):
        for number, (name, shape) in enumerate(shapes.items()):
            size = tuple(rows // block for rows in shape)
            parts = [tensor(dtype, size, 10 * number + each) for each in range(3)]
            file |= {f"{published}.{each}.{name}.weight{end}": part for each, part in enumerate(parts)}
            stacks.setdefault(end, {})[name] = stacked(parts)
    gate, up, down = names
    params: Held = {}
    for end, found in stacks.items():
        params |= {
            f"{parameter}.gate_up_proj{end}": stacked([found[gate], found[up]], 1),
            f"{parameter}.down_proj{end}": found[down],
        }
    return file, params


QWEN3_MOE = (("", "Qwen3MoeForCausalLM", "qwen3_moe"), ("model", "Qwen3MoeModel", "qwen3_moe"))
MINIMAX_M2 = (("", "MiniMaxM2ForCausalLM", "minimax_m2"), ("model", "MiniMaxM2Model", "minimax_m2"))


@pytest.mark.parametrize(
    ("rules", "published", "names"),
    [
        (model_rules(*QWEN3_MOE), "mlp.experts", ("gate_proj", "up_proj", "down_proj")),
        (model_rules(*MINIMAX_M2), "block_sparse_moe.experts", ("w1", "w3", "w2")),
    ],
    ids=["qwen3_moe", "minimax_m2"],
)
def test_fp8_stays_packed(tmp_path: Path, rules: RuleSet, published: str, names: tuple[str, str, str]) -> None:
    layout = Layout().same(["model.norm.weight", "lm_head.weight"])
    attention = "model.layers.0.self_attn.q_proj"
    linear = {
        f"{attention}.weight": tensor("F8_E4M3", (4, 4), 50),
        f"{attention}.weight_scale_inv": tensor("F32", (2, 2), 51),
    }
    layout.added(linear, linear)
    layout.added(*fp8_experts(f"model.layers.0.{published}", "model.layers.0.mlp.experts", names))
    comes_back_and_is_written(tmp_path, layout, rules, FP8)


def test_mxfp4_stays_packed(tmp_path: Path) -> None:
    experts = "model.layers.0.mlp.experts"
    packed = {
        f"{experts}.gate_up_proj_blocks": tensor("U8", (2, 8, 1, 16), 1),
        f"{experts}.gate_up_proj_scales": tensor("U8", (2, 8, 1), 2),
        f"{experts}.gate_up_proj_bias": tensor("BF16", (2, 8), 3),
        f"{experts}.down_proj_blocks": tensor("U8", (2, 4, 2, 16), 4),
        f"{experts}.down_proj_scales": tensor("U8", (2, 4, 2), 5),
        f"{experts}.down_proj_bias": tensor("BF16", (2, 4), 6),
    }
    layout = Layout().same(["model.layers.0.mlp.router.weight", "model.layers.0.self_attn.sinks", "lm_head.weight"])
    layout.added(packed, packed)
    rules = model_rules(("", "GptOssForCausalLM", "gpt_oss"), ("model", "GptOssModel", "gpt_oss"))
    comes_back_and_is_written(tmp_path, layout, rules, {"quantization_config": {"quant_method": "mxfp4"}})


DEEPSEEK_V3 = (("", "DeepseekV3ForCausalLM", "deepseek_v3"), ("model", "DeepseekV3Model", "deepseek_v3"))
PREDICTION = [
    *(
        f"{part}.weight"
        for part in ("eh_proj", "enorm", "hnorm", "embed_tokens", "shared_head.head", "shared_head.norm")
    ),
    "self_attn.q_a_proj.weight",
    "mlp.gate.e_score_correction_bias",
    *(f"mlp.experts.{number}.{part}_proj.weight" for number in range(2) for part in ("gate", "up", "down")),
]


@pytest.mark.parametrize("depth", [61, 2])
def test_prediction_layers_are_dropped_by_number_and_come_back(tmp_path: Path, depth: int) -> None:
    """The layer behind the last one, whatever its number; all that is in it is named."""
    last = f"model.layers.{depth - 1}"
    layout = Layout().same(["model.norm.weight", "lm_head.weight", f"{last}.self_attn.q_a_proj.weight"])
    layout.experts(f"{last}.mlp.experts", f"{last}.mlp.experts", ("gate_proj", "up_proj", "down_proj"), 2)
    names = [f"model.layers.{depth}.{name}" for name in PREDICTION]
    layout.only_in_file(names)
    config = {"num_hidden_layers": depth, "num_nextn_predict_layers": 1}
    plan = comes_back(tmp_path, layout, model_rules(*DEEPSEEK_V3), config)
    assert [record.name for record in plan.report.dropped] == sorted(names)
    assert {record.why for record in plan.report.dropped} == {
        "Where they have numbers: the model itself does without them."
    }


def test_a_prediction_layer_that_the_config_does_not_know_is_unexpected(tmp_path: Path) -> None:
    layout = Layout().same(["model.norm.weight"]).only_in_file([f"model.layers.2.{name}" for name in PREDICTION])
    plan = comes_back(tmp_path, layout, model_rules(*DEEPSEEK_V3), {"num_hidden_layers": 2}, strict=False)
    assert plan.report.unexpected == tuple(sorted(f"model.layers.2.{name}" for name in PREDICTION))
    assert not plan.ok()


def test_each_tensor_keeps_the_dtype_of_the_file(tmp_path: Path) -> None:
    """A router, its correction, norms and a position table in wider floats than the rest, as they are published."""
    layer = "model.layers.0"
    mixed = {
        f"{layer}.mlp.gate.weight": tensor("F32", (3, 2), 1),
        f"{layer}.mlp.gate.e_score_correction_bias": tensor("F32", (3,), 2),
        f"{layer}.input_layernorm.weight": tensor("F32", (2,), 3),
        f"{layer}.post_attention_layernorm.weight": tensor("F16", (2,), 4),
        "model.norm.weight": tensor("BF16", (2,), 5),
    }
    layout = Layout().same(["lm_head.weight"]).added(mixed, mixed)
    layout.experts(f"{layer}.mlp.experts", f"{layer}.mlp.experts", ("gate_proj", "up_proj", "down_proj"))
    comes_back_and_is_written(tmp_path, layout, model_rules(*DEEPSEEK_V3))


def test_metadata_and_tensors_that_no_rule_knows_are_kept(tmp_path: Path) -> None:
    """The file's own metadata is written by `comes_back` in all these tests; here is what else a file may have."""
    layout = Layout().same(["model.norm.weight", "lm_head.weight"]).only_in_file(["model.norm.helper", "stray"])
    plan = comes_back(tmp_path, layout, model_rules(*QWEN3_MOE), strict=False)
    assert plan.report.unexpected == ("model.norm.helper", "stray")
    assert not plan.ok(strict=True)
