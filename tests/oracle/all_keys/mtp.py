"""The layers that guess further tokens: a model of their own, read from the file of the main one.

Where they start in that file the main model's config says, so what renumbers them is put together here, from its
numbers; the reference implementation does so when it loads them. The rest is the rules that ship.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.oracle import peer
from tests.oracle.all_keys.build import Built, filled
from tests.oracle.all_keys.classes import class_named, config_class
from tests.oracle.all_keys.precision import MIXED, PREPARED, narrow_matrices
from tests.oracle.all_keys.published import rewrite
from tests.oracle.all_keys.shrink import tiny_config
from tests.oracle.all_keys.trial import Trial
from weightloom.engine import Drop, IndexMap, PrefixChange, RuleSet, WeightRenaming

# The reference implementation looks for these layers under this number, which is that of the published model.
FIRST = 61
_FIELDS = {"first_k_dense_replace": FIRST - 1, "num_nextn_predict_layers": 1}


def build_mtp() -> Built:
    """Build one such layer beside a main model; `main` of what is built has its block as one more layer."""
    from transformers.modeling_layers import MtpModel

    main_class, config_type = class_named("DeepseekV3ForCausalLM"), config_class("deepseek_v3", "DeepseekV3Config")
    config = tiny_config(config_type, {**_FIELDS, "num_hidden_layers": FIRST + 1})
    longer = filled(main_class(config).eval())
    shorter = deepcopy(config)
    shorter.num_hidden_layers = FIRST
    main = main_class(shorter).eval()
    main.load_state_dict(longer.state_dict(), strict=False)
    model = filled(MtpModel(main, 1).eval())
    longer.load_state_dict(_as_a_layer(model.state_dict()), strict=False)
    return Built(model, main_class, config_type, main=longer)


def _as_a_layer(state: Mapping[str, Any]) -> dict[str, Any]:
    """The block, the embedding and the head under the main model's names."""
    block = "layers.0.mtp_block."
    found = {f"model.layers.{FIRST}.{n.removeprefix(block)}": t for n, t in state.items() if n.startswith(block)}
    return found | {
        "model.embed_tokens.weight": state["embed_tokens.weight"],
        "lm_head.weight": state["shared_head.weight"],
    }


class MtpTrial(Trial):
    """A comparison of these layers alone."""

    @cached_property
    def source(self) -> Path:
        """A directory with the main model's file, these layers behind its own."""
        source, main = self.directory / "source", self.built.main
        for model in (main, self.built.model):
            PREPARED[self.dtype](model)
        with peer.quiet():
            main.save_pretrained(source)
        rewrite(source, lambda held: held | self._beside_the_block())
        config = peer.config_of(source) | {"num_hidden_layers": FIRST}
        (source / "config.json").write_text(json.dumps(config))
        if self.dtype == MIXED:
            narrow_matrices(source)
        return source

    @cached_property
    def rules(self) -> RuleSet:
        """What puts the main model's own aside and renumbers the layers, then the rules that ship."""
        from weightloom.rules import registry

        numbers = "|".join(map(str, range(FIRST)))
        own = (
            WeightRenaming(rf"^model\.(layers\.(?:{numbers})|norm)\.", r"^main.\1."),
            WeightRenaming(rf"^model\.(layers\.{FIRST}\.(?:embed_tokens|shared_head\.head))\.", r"^main.\1."),
            Drop(r"^main\."),
            IndexMap(rf"^model\.layers\.{{i+{FIRST}}}\.", "^model.layers.{i}.mtp_block."),
            WeightRenaming("^lm_head", "^shared_head"),
        )
        return RuleSet((*own, *(registry("MtpModel") or ()), *(registry("deepseek_v3") or ())))

    @property
    def prefixes(self) -> tuple[PrefixChange, ...]:
        """None: which of them a file has is its family's to say."""
        return ()

    def loaded(self, directory: Path) -> tuple[Any, dict[str, Any]]:
        """Load the main model, and these layers beside it."""
        from transformers.modeling_layers import MtpModel

        main, _ = super().loaded(directory)
        with peer.quiet():
            return MtpModel.from_pretrained(main), {}

    def _beside_the_block(self) -> peer.Held:
        state = self.built.model.state_dict()
        start = f"model.layers.{FIRST}."
        names = {
            **{f"{start}{part}.weight": f"layers.0.{part}.weight" for part in ("enorm", "hnorm", "eh_proj")},
            f"{start}shared_head.norm.weight": "layers.0.post_norm.weight",
            f"{start}shared_head.head.weight": "shared_head.weight",
            f"{start}embed_tokens.weight": "embed_tokens.weight",
        }
        return {name: (peer.spec_of(state[own]), peer.bytes_of(state[own])) for name, own in names.items()}
