"""Configs that are put together by hand, for their classes cannot be shrunk field by field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.oracle.all_keys.classes import config_class

Make = Callable[[str], Any]

_TOKENS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
_TEXT = {
    "vocab_size": 128,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}
_VISION = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
_AUDIO_IDS = {"image_token_id": 100, "video_token_id": 101, "audio_token_id": 102}


def _resnet(*stages: str) -> Any:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]}
    return config_class("resnet", "ResNetConfig")(**sizes, layer_type="basic", out_features=list(stages))


def _all_stages() -> Any:
    return _resnet("stage1", "stage2", "stage3", "stage4")


def _detector(folder: str, name: str, heads: int = 4, **fields: Any) -> Any:
    layers = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48}
    attention = {"encoder_attention_heads": heads, "decoder_attention_heads": heads}
    backbone = {"backbone_config": _all_stages()}
    return config_class(folder, name)(**(backbone | layers | attention | fields), d_model=32, num_queries=8)


def _deformable_detr(_: str) -> Any:
    special = {"num_feature_levels": 3, "two_stage": True, "with_box_refine": True}
    return _detector(
        "deformable_detr",
        "DeformableDetrConfig",
        backbone_config=_resnet("stage2", "stage3", "stage4"),
        **special,
    )


def _d_fine(_: str) -> Any:
    backbone = config_class("hgnet_v2", "HGNetV2Config")(
        hidden_sizes=[8, 16, 24, 32],
        stem_channels=[3, 8, 8],
        stage_in_channels=[8, 8, 16, 24],
        stage_mid_channels=[4, 8, 8, 8],
        stage_out_channels=[8, 16, 24, 32],
        stage_num_blocks=[1] * 4,
        stage_numb_of_layers=[1] * 4,
        out_features=["stage2", "stage3", "stage4"],
    )
    return config_class("d_fine", "DFineConfig")(
        backbone_config=backbone,
        encoder_hidden_dim=32,
        encoder_in_channels=[16, 24, 32],
        encoder_layers=1,
        encoder_ffn_dim=48,
        encoder_attention_heads=4,
        d_model=32,
        num_queries=8,
        decoder_in_channels=[32] * 3,
        decoder_ffn_dim=48,
        decoder_layers=2,
        decoder_attention_heads=4,
        decoder_n_points=[3, 6, 3],
        num_denoising=2,
        lqe_hidden_dim=8,
        lqe_layers=2,
        hidden_expansion=0.5,
    )


def _maskformer(_: str) -> Any:
    swin = {"image_size": 32, "patch_size": 4, "embed_dim": 8, "depths": [1] * 4, "num_heads": [1, 1, 2, 2]}
    stages = ["stage1", "stage2", "stage3", "stage4"]
    backbone = config_class("swin", "SwinConfig")(**swin, window_size=2, out_features=stages)
    decoder = _detector("detr", "DetrConfig", encoder_layers=1)
    return config_class("maskformer", "MaskFormerConfig")(
        backbone_config=backbone, decoder_config=decoder, fpn_feature_size=32, mask_feature_size=32
    )


def _beit(_: str, **fields: Any) -> Any:
    size = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 48}
    image = {"image_size": 32, "patch_size": 8, "vocab_size": 128, "out_indices": [1, 2, 3, 4]}
    return config_class("beit", "BeitConfig")(**size, **image, use_mask_token=True, **fields)


def _beit_segmentation(_: str) -> Any:
    head = {"pool_scales": [1, 2, 3, 6], "num_labels": 5, "auxiliary_num_convs": 1, "auxiliary_channels": 16}
    return _beit(_, use_relative_position_bias=True, **head)


def _segformer(_: str) -> Any:
    sizes = {"depths": [1] * 4, "sr_ratios": [8, 4, 2, 1], "hidden_sizes": [8, 8, 16, 16]}
    heads = {"num_attention_heads": [1, 2, 2, 4], "decoder_hidden_size": 16}
    return config_class("segformer", "SegformerConfig")(**sizes, **heads, num_encoder_blocks=4)


def _dpt(_: str) -> Any:
    image = {"image_size": 32, "patch_size": 8, "out_indices": [1, 2, 3, 4]}
    size = {"hidden_size": 32, "num_hidden_layers": 4, "num_attention_heads": 4}
    backbone = config_class("tipsv2", "Tipsv2VisionConfig")(**size, **image)
    neck = {"neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16, "reassemble_factors": [4, 2, 1, 0.5]}
    return config_class("tipsv2_dpt", "Tipsv2DptConfig")(backbone_config=backbone, **neck)


def _sapiens2(class_name: str) -> Any:
    def head(up: int, conv: int) -> dict[str, list[int]]:
        kernels = {"upsample_kernel_sizes": [4] * up, "conv_kernel_sizes": [1] * conv}
        return {"upsample_out_channels": [8] * up, "conv_out_channels": [8] * conv} | kernels

    heads: dict[str, dict[str, Any]] = {
        "Sapiens2ForSemanticSegmentation": head(4, 2),
        "Sapiens2ForPoseEstimation": head(2, 3),
    }
    maps = {"scale_conv_out_channels": [8] * 3, "scale_conv_kernel_sizes": [1] * 3, "scale_final_hidden_sizes": [8, 8]}
    plain = head(0, 3) | maps | {"upsample_out_channels": [8] * 4, "use_pixel_shuffle": True}
    plain.pop("upsample_kernel_sizes")
    layers = {"num_first_full_attention_layers": 1, "num_last_full_attention_layers": 1}
    size = _VISION | layers | {"num_key_value_attention_heads": 2, "patch_size": 8, "image_size": 32}
    return config_class("sapiens2", "Sapiens2Config")(
        **size, num_register_tokens=2, num_labels=5, head_config=heads.get(class_name, plain)
    )


def _mimi(_: str) -> Any:
    size = {"hidden_size": 32, "num_filters": 4, "num_residual_layers": 1, "upsampling_ratios": [2, 2]}
    codes = {"codebook_size": 32, "codebook_dim": 16, "vector_quantization_hidden_dimension": 16}
    layers = _TEXT | {"num_key_value_heads": 4, "head_dim": 8, "sliding_window": 8}
    layers.pop("vocab_size")
    rates = {"upsample_groups": 32, "frame_rate": 200.0, "sampling_rate": 1600}
    return config_class("mimi", "MimiConfig")(
        **(layers | size | codes | rates), num_quantizers=3, num_semantic_quantizers=1
    )


def _emu3(_: str) -> Any:
    words = {"<image>": 3, **{f"<|visual token {i:06d}|>": 10 + i for i in range(16)}}
    codes = {"codebook_size": 16, "embed_dim": 4, "latent_channels": 4, "base_channels": 32, "hidden_size": 32}
    blocks = {"channel_multiplier": [1, 1], "num_res_blocks": 1, "attn_resolutions": []}
    return config_class("emu3", "Emu3Config")(
        vq_config=codes | blocks | {"temporal_downsample_factor": 1}, text_config=_TEXT | _TOKENS, vocabulary_map=words
    )


def _gemma3n(_: str) -> Any:
    text: dict[str, Any] = _TEXT | {
        "vocab_size_per_layer_input": 128,
        "num_hidden_layers": 5,
        "head_dim": 8,
        "laurel_rank": 8,
    }
    text |= {"hidden_size_per_layer_input": 8, "num_kv_shared_layers": 0, "activation_sparsity_pattern": None}
    audio: dict[str, Any] = {"vocab_size": 8, "vocab_offset": 120, "hidden_size": 32, "conf_num_attention_heads": 4}
    audio |= {"conf_num_hidden_layers": 2, "sscp_conv_channel_size": [8, 8], "input_feat_size": 16}
    vision: dict[str, Any] = {"vocab_size": 8, "vocab_offset": 112, "hidden_size": 32, "architecture": "resnet10t"}
    vision |= {"model_args": {"channels": [8, 8, 16, 32], "stem_width": 8}, "do_pooling": False}
    return config_class("gemma3n", "Gemma3nConfig")(
        text_config=text, audio_config=audio, vision_config=vision, audio_token_id=110, image_token_id=111
    )


def _dots_text_fields() -> dict[str, Any]:
    experts = {"n_routed_experts": 4, "moe_intermediate_size": 24, "num_experts_per_tok": 2}
    ranks = {"kv_lora_rank": 16, "q_lora_rank": 16, "qk_rope_head_dim": 8, "v_head_dim": 8, "qk_nope_head_dim": 8}
    index = {"index_head_dim": 16, "index_n_heads": 4, "head_dim": 16, "shared_experts_intermediate_size": 24}
    kinds = {"mlp_layer_types": ["dense", "sparse"], "layer_types": ["full_attention"] * 2}
    return _TEXT | _TOKENS | experts | ranks | index | kinds | {"num_key_value_heads": 4}


def _dots_vision_fields() -> dict[str, Any]:
    experts = {"moe_intermediate_size": 24, "num_local_experts": 4, "num_experts_per_tok": 2}
    adapter = {"router_scaling_factor": 1.0, "adapter_in_dim": 32, "adapter_out_dim": 32, "patch_size": 8}
    kinds = {"mlp_layer_types": ["dense", "sparse"], "per_layer_config": {1: {"num_local_experts": 4}}}
    return _VISION | experts | adapter | kinds


def _dots_text(_: str) -> Any:
    return config_class("dots3_note", "Dots3NoteTextConfig")(**_dots_text_fields())


def _dots_vision(_: str) -> Any:
    return config_class("dots3_note", "Dots3NoteVisionConfig")(**_dots_vision_fields())


def _dots(_: str) -> Any:
    sizes = {"feature_size": 16, "downsample_hidden_size": 8, "adapter_input_size": 32, "adapter_out_dim": 32}
    audio = _VISION | sizes | {"max_position_embeddings": 64}
    return config_class("dots3_note", "Dots3NoteConfig")(
        text_config=_dots_text_fields(), vision_config=_dots_vision_fields(), audio_config=audio, **_AUDIO_IDS
    )


def _vibevoice(_: str) -> Any:
    sizes = {"num_filters": 4, "depths": [1, 1, 1], "downsampling_ratios": [2, 2], "hidden_size": 16}
    encoder = {"model_type": "vibevoice_acoustic_tokenizer_encoder"} | sizes
    return config_class("vibevoice_asr", "VibeVoiceAsrConfig")(
        acoustic_tokenizer_encoder_config=dict(encoder),
        semantic_tokenizer_encoder_config=dict(encoder),
        text_config=_TEXT | {"model_type": "qwen2"},
        audio_token_id=100,
        audio_bos_token_id=101,
        audio_eos_token_id=102,
        acoustic_tokenizer_chunk_size=6400,
    )


def _timm(_: str) -> Any:
    sizes = {"channels": [8, 8, 16, 16], "stem_width": 8}
    return config_class("timm_wrapper", "TimmWrapperConfig")(architecture="resnet10t", model_args=sizes)


def _nemotron_omni(_: str) -> Any:
    image = {"patch_size": 8, "image_size": 32, "max_img_size": 64, "num_cls_tokens": 1, "num_registers": 2}
    vision = _VISION | image | {"model_type": "radio", "video_temporal_patch_size": 2}
    vision.pop("intermediate_size")
    mamba = {"mamba_num_heads": 4, "mamba_head_dim": 8, "ssm_state_size": 8, "n_groups": 2, "head_dim": 8}
    experts = {"n_routed_experts": 4, "moe_intermediate_size": 24, "moe_shared_expert_intermediate_size": 24}
    kinds = {"layers_block_type": ["mamba", "moe", "attention", "mlp"], "num_experts_per_tok": 2}
    text = _TEXT | mamba | experts | kinds | {"model_type": "nemotron_h"}
    text.pop("num_hidden_layers")
    audio = _VISION | {"model_type": "parakeet_encoder", "subsampling_conv_channels": 8, "num_mel_bins": 16}
    audio |= {"projection_hidden_size": 32, "projection_bias": False}
    return config_class("nemotron_h_omni", "NemotronH_Omni_Reasoning_V3_Config")(
        vision_config=vision,
        text_config=text,
        audio_config=audio,
        projector_hidden_size=32,
        vision_hidden_size=32,
        **_AUDIO_IDS,
    )


def _mlcd(_: str) -> Any:
    from tests.oracle.all_keys.shrink import tiny_config

    config = tiny_config(config_class("mlcd", "MLCDVisionConfig"), {})
    config.model_type = "mlcd"  # as published configs have it
    return config


_SAPIENS = ("SemanticSegmentation", "PoseEstimation", "NormalEstimation", "PointmapEstimation", "ImageMatting")
_DPT = ("DepthEstimation", "NormalEstimation", "SemanticSegmentation")
BUILT: dict[str, Make] = {
    "BeitBackbone": lambda name: _beit(name, use_shared_relative_position_bias=True, add_fpn=True),
    "BeitForSemanticSegmentation": _beit_segmentation,
    "BeitModel": _beit_segmentation,
    "ConditionalDetrForSegmentation": lambda _: _detector("conditional_detr", "ConditionalDetrConfig", 8),
    "ConditionalDetrModel": lambda _: _detector("conditional_detr", "ConditionalDetrConfig"),
    "DetrForSegmentation": lambda _: _detector("detr", "DetrConfig", 8),
    "DetrModel": lambda _: _detector("detr", "DetrConfig"),
    "Dots3NoteForConditionalGeneration": _dots,
    "Dots3NoteModel": _dots,
    "Dots3NoteTextModel": _dots_text,
    "Emu3Model": _emu3,
    "MimiDecoderModel": _mimi,
    "MimiEncoderModel": _mimi,
    "MimiModel": _mimi,
    "NemotronH_Omni_Reasoning_V3": _nemotron_omni,
    "SegformerForSemanticSegmentation": _segformer,
    "SegformerModel": _segformer,
    "VibeVoiceAsrModel": _vibevoice,
    "d_fine": _d_fine,
    "deformable_detr": _deformable_detr,
    "detr": lambda _: _detector("detr", "DetrConfig"),
    "dots3_note_vision_encoder": _dots_vision,
    "emu3": _emu3,
    "gemma3n": _gemma3n,
    "maskformer": _maskformer,
    "mimi": _mimi,
    "mlcd": _mlcd,
    "timm_wrapper": _timm,
    "tipsv2_dpt": _dpt,
    "vibevoice_asr": _vibevoice,
    **{f"Sapiens2For{task}": _sapiens2 for task in _SAPIENS},
    **{f"Tipsv2DptFor{task}": _dpt for task in _DPT},
}
