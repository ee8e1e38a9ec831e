"""Parts that several architectures share; an architecture file imports these and never another architecture.

The names below are kept stable for authors of plugins, and imported on first use.
"""

from typing import TYPE_CHECKING

from weightloom.engine.exports import exporting

if TYPE_CHECKING:
    from weightloom.plugins.layers.activations import Activation as Activation
    from weightloom.plugins.layers.activations import activation as activation
    from weightloom.plugins.layers.attention import Attention as Attention
    from weightloom.plugins.layers.attention import AttentionShape as AttentionShape
    from weightloom.plugins.layers.attention import FusedAttention as FusedAttention
    from weightloom.plugins.layers.attention import WideNormAttention as WideNormAttention
    from weightloom.plugins.layers.blocks import Block as Block
    from weightloom.plugins.layers.blocks import ParallelBlock as ParallelBlock
    from weightloom.plugins.layers.blocks import PostNormBlock as PostNormBlock
    from weightloom.plugins.layers.blocks import SandwichBlock as SandwichBlock
    from weightloom.plugins.layers.blocks import SingleBlock as SingleBlock
    from weightloom.plugins.layers.cache import Cache as Cache
    from weightloom.plugins.layers.cache import FullCache as FullCache
    from weightloom.plugins.layers.cache import NoCache as NoCache
    from weightloom.plugins.layers.cache import SlidingCache as SlidingCache
    from weightloom.plugins.layers.convolution import CausalConv1d as CausalConv1d
    from weightloom.plugins.layers.decoder import CausalLM as CausalLM
    from weightloom.plugins.layers.decoder import Decoder as Decoder
    from weightloom.plugins.layers.decoder import Layer as Layer
    from weightloom.plugins.layers.decoder import Names as Names
    from weightloom.plugins.layers.dense import DenseConfig as DenseConfig
    from weightloom.plugins.layers.dense import build_dense as build_dense
    from weightloom.plugins.layers.embedder import Embedder as Embedder
    from weightloom.plugins.layers.experts import Experts as Experts
    from weightloom.plugins.layers.experts import SparseMlp as SparseMlp
    from weightloom.plugins.layers.gated_attention import GatedAttention as GatedAttention
    from weightloom.plugins.layers.latent_attention import LatentAttention as LatentAttention
    from weightloom.plugins.layers.latent_attention import LatentShape as LatentShape
    from weightloom.plugins.layers.mamba import MambaMixer as MambaMixer
    from weightloom.plugins.layers.mamba import MambaShape as MambaShape
    from weightloom.plugins.layers.mamba2 import Mamba2Mixer as Mamba2Mixer
    from weightloom.plugins.layers.mamba2 import Mamba2Shape as Mamba2Shape
    from weightloom.plugins.layers.masks import Chunked as Chunked
    from weightloom.plugins.layers.masks import Mask as Mask
    from weightloom.plugins.layers.masks import Window as Window
    from weightloom.plugins.layers.masks import causal_mask as causal_mask
    from weightloom.plugins.layers.masks import mutual_mask as mutual_mask
    from weightloom.plugins.layers.mixer_block import MixerBlock as MixerBlock
    from weightloom.plugins.layers.mixer_block import Parts as Parts
    from weightloom.plugins.layers.mlp import FusedMlp as FusedMlp
    from weightloom.plugins.layers.mlp import GatedMlp as GatedMlp
    from weightloom.plugins.layers.mlp import PlainMlp as PlainMlp
    from weightloom.plugins.layers.norms import Norm as Norm
    from weightloom.plugins.layers.norms import layer_norm as layer_norm
    from weightloom.plugins.layers.norms import rms_norm as rms_norm
    from weightloom.plugins.layers.norms import zero_centred_norm as zero_centred_norm
    from weightloom.plugins.layers.plain_experts import PlainExperts as PlainExperts
    from weightloom.plugins.layers.rope import Rope as Rope
    from weightloom.plugins.layers.routing import Router as Router
    from weightloom.plugins.layers.routing import softmax_over_all as softmax_over_all
    from weightloom.plugins.layers.routing import softmax_over_chosen as softmax_over_chosen
    from weightloom.plugins.layers.scored_experts import ScoredSparseMlp as ScoredSparseMlp
    from weightloom.plugins.layers.scoring import Scoring as Scoring
    from weightloom.plugins.layers.shared_experts import GatedSharedSparseMlp as GatedSharedSparseMlp
    from weightloom.plugins.layers.shared_experts import SharedSparseMlp as SharedSparseMlp
    from weightloom.plugins.layers.state import State as State
    from weightloom.plugins.layers.state import StateCache as StateCache

_MODULE_OF = {
    "Activation": "activations",
    "Attention": "attention",
    "AttentionShape": "attention",
    "Block": "blocks",
    "Cache": "cache",
    "CausalConv1d": "convolution",
    "CausalLM": "decoder",
    "Chunked": "masks",
    "Decoder": "decoder",
    "DenseConfig": "dense",
    "Embedder": "embedder",
    "Experts": "experts",
    "FullCache": "cache",
    "FusedAttention": "attention",
    "FusedMlp": "mlp",
    "GatedAttention": "gated_attention",
    "GatedMlp": "mlp",
    "GatedSharedSparseMlp": "shared_experts",
    "LatentAttention": "latent_attention",
    "LatentShape": "latent_attention",
    "Layer": "decoder",
    "Mamba2Mixer": "mamba2",
    "Mamba2Shape": "mamba2",
    "MambaMixer": "mamba",
    "MambaShape": "mamba",
    "Mask": "masks",
    "MixerBlock": "mixer_block",
    "Names": "decoder",
    "NoCache": "cache",
    "Norm": "norms",
    "ParallelBlock": "blocks",
    "Parts": "mixer_block",
    "PlainExperts": "plain_experts",
    "PlainMlp": "mlp",
    "PostNormBlock": "blocks",
    "Rope": "rope",
    "Router": "routing",
    "SandwichBlock": "blocks",
    "ScoredSparseMlp": "scored_experts",
    "Scoring": "scoring",
    "SharedSparseMlp": "shared_experts",
    "SingleBlock": "blocks",
    "SlidingCache": "cache",
    "SparseMlp": "experts",
    "State": "state",
    "StateCache": "state",
    "WideNormAttention": "attention",
    "Window": "masks",
    "activation": "activations",
    "build_dense": "dense",
    "causal_mask": "masks",
    "layer_norm": "norms",
    "mutual_mask": "masks",
    "rms_norm": "norms",
    "softmax_over_all": "routing",
    "softmax_over_chosen": "routing",
    "zero_centred_norm": "norms",
}

__all__ = sorted(_MODULE_OF)  # pyright: ignore[reportUnsupportedDunderAll]

if not TYPE_CHECKING:
    __getattr__ = exporting(__name__, _MODULE_OF)
