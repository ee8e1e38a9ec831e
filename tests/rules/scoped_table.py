"""Composite models: their trees, as a walk meets them, and whose rules each part has, in order."""

from __future__ import annotations

from dataclasses import dataclass

Node = tuple[str, str, str]


@dataclass(frozen=True)
class Walk:
    """A model (`key` names it for the comparison), its tree, and (rule file, scope) of each part that has rules.

    A scope is shown as `base.path`; "" is the whole model. Legacy names come last, everywhere.
    """

    key: str
    base: str
    nodes: tuple[Node, ...]
    wanted: tuple[tuple[str, str], ...]


WALKS = (
    # The root by its type, what it holds by its class, a tower by its class, the text model by its type.
    Walk(
        "gemma3",
        "model",
        (
            ("", "Gemma3ForConditionalGeneration", "gemma3"),
            ("model", "Gemma3Model", "gemma3"),
            ("model.vision_tower", "SiglipVisionModel", "siglip_vision_model"),
            ("model.language_model", "Gemma3TextModel", "gemma3_text"),
        ),
        (
            ("multimodal_wrapper", ""),
            ("llava", ""),
            ("gemma3", ""),
            ("llava_model", "model"),
            ("clip_vision", "model.vision_tower"),
            ("llama", "model.language_model"),
            ("gemma", "model.language_model"),
        ),
    ),
    # Three deep: the class of the root, nothing for the detector between, the class of the model in it.
    Walk(
        "DetrForSegmentation",
        "model",
        (
            ("", "DetrForSegmentation", "detr"),
            ("detr", "DetrForObjectDetection", "detr"),
            ("detr.model", "DetrModel", "detr"),
            ("detr.model.backbone.model", "ResNetBackbone", "resnet"),
            ("detr.model.encoder", "DetrEncoder", "detr"),
            ("detr.model.decoder", "DetrDecoder", "detr"),
        ),
        (("detr_segmentation", ""), ("detr_model", "model.detr.model")),
    ),
    # The same model under `model`: the base prefix is no part of the scope's path.
    Walk(
        "detr",
        "model",
        (
            ("", "DetrForObjectDetection", "detr"),
            ("model", "DetrModel", "detr"),
            ("model.backbone.model", "ResNetBackbone", "resnet"),
            ("model.encoder", "DetrEncoder", "detr"),
            ("model.decoder", "DetrDecoder", "detr"),
        ),
        (("detr_model", "model"),),
    ),
    # As a root it has the same rules, for everything.
    Walk(
        "DetrModel",
        "model",
        (
            ("", "DetrModel", "detr"),
            ("backbone.model", "ResNetBackbone", "resnet"),
            ("encoder", "DetrEncoder", "detr"),
            ("decoder", "DetrDecoder", "detr"),
        ),
        (("detr_model", ""),),
    ),
    # Another family's decoder, by an alias of its class.
    Walk(
        "maskformer",
        "model",
        (
            ("", "MaskFormerForInstanceSegmentation", "maskformer"),
            ("model", "MaskFormerModel", "maskformer"),
            ("model.pixel_level_module.encoder", "MaskFormerSwinBackbone", "maskformer-swin"),
            ("model.pixel_level_module.encoder.model", "MaskFormerSwinModel", "maskformer-swin"),
            ("model.transformer_module.decoder", "MaskFormerDetrDecoder", "detr"),
        ),
        (("maskformer", ""), ("detr_model", "model.transformer_module.decoder")),
    ),
    # Two siblings of one class: each has the rules, in a scope of its own.
    Walk(
        "video_llava",
        "model",
        (
            ("", "VideoLlavaForConditionalGeneration", "video_llava"),
            ("model", "VideoLlavaModel", "video_llava"),
            ("model.video_tower", "CLIPVisionModel", "clip_vision_model"),
            ("model.image_tower", "CLIPVisionModel", "clip_vision_model"),
            ("model.language_model", "LlamaModel", "llama"),
        ),
        (
            ("multimodal_wrapper", ""),
            ("video_llava", ""),
            ("llava_model", "model"),
            ("clip_vision", "model.video_tower"),
            ("clip_vision", "model.image_tower"),
            ("llama", "model.language_model"),
        ),
    ),
    # The type of the root covers parts of that type; parts of a class with rules are still reached.
    Walk(
        "mimi",
        "mimi",
        (
            ("", "MimiModel", "mimi"),
            ("encoder", "MimiEncoderModel", "mimi"),
            ("decoder", "MimiDecoderModel", "mimi"),
        ),
        (("mimi", ""), ("mimi_encoder", "mimi.encoder"), ("mimi_decoder", "mimi.decoder")),
    ),
    # An alias of the root's type, an alias of the class in it, and a text model with experts.
    Walk(
        "qwen3_omni_moe_thinker",
        "model",
        (
            ("", "Qwen3OmniMoeThinkerForConditionalGeneration", "qwen3_omni_moe_thinker"),
            ("model", "Qwen3OmniMoeThinkerModel", "qwen3_omni_moe_thinker"),
            ("model.audio_tower", "Qwen3OmniMoeAudioEncoder", "qwen3_omni_moe_audio_encoder"),
            ("model.visual", "Qwen3OmniMoeVisionEncoder", "qwen3_omni_moe_vision_encoder"),
            ("model.language_model", "Qwen3OmniMoeThinkerTextModel", "qwen3_omni_moe_text"),
        ),
        (
            ("qwen2_5_omni_thinker", ""),
            ("qwen2_5_omni_thinker_model", "model"),
            ("llama", "model.language_model"),
            ("qwen2_moe", "model.language_model"),
        ),
    ),
    # The root's rules say all: neither its towers nor its text model have any.
    Walk(
        "ernie4_5_vl_moe",
        "model",
        (
            ("", "Ernie4_5_VLMoeForConditionalGeneration", "ernie4_5_vl_moe"),
            ("model", "Ernie4_5_VLMoeModel", "ernie4_5_vl_moe"),
            ("model.language_model", "Ernie4_5_VLMoeTextModel", "ernie4_5_vl_moe_text"),
            ("model.vision_tower", "Ernie4_5_VLMoeVisionTransformerPretrainedModel", "ernie4_5_vl_moe_vision"),
        ),
        (("ernie4_5_vl_moe", ""),),
    ),
    # A whole model with a head inside another: only the outer `model` is the base prefix.
    Walk(
        "shieldgemma2",
        "model",
        (
            ("", "ShieldGemma2ForImageClassification", "shieldgemma2"),
            ("model", "Gemma3ForConditionalGeneration", "shieldgemma2"),
            ("model.model", "Gemma3Model", "shieldgemma2"),
            ("model.model.vision_tower", "SiglipVisionModel", "siglip_vision_model"),
            ("model.model.language_model", "Gemma3TextModel", "gemma3_text"),
        ),
        (
            ("shieldgemma2", ""),
            ("llava_model", "model.model"),
            ("clip_vision", "model.model.vision_tower"),
            ("llama", "model.model.language_model"),
            ("gemma", "model.model.language_model"),
        ),
    ),
    # A base prefix of another name; the model in it by its class.
    Walk(
        "colqwen2",
        "vlm",
        (
            ("", "ColQwen2ForRetrieval", "colqwen2"),
            ("vlm", "Qwen2VLModel", "qwen2_vl"),
            ("vlm.visual", "Qwen2VisionTransformerPretrainedModel", "qwen2_vl_vision"),
            ("vlm.language_model", "Qwen2VLTextModel", "qwen2_vl_text"),
        ),
        (("colqwen2", ""), ("qwen2_vl_model", "vlm")),
    ),
)
