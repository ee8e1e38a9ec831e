"""One rank of several: load a model's part, run it whole and through the cache, and say what came out, as JSON."""

import json
import sys

import mlx.core as mx

from weightloom.engine import Sharding
from weightloom.runtime import load
from weightloom.runtime.loading.ranks import need_group
from weightloom.runtime.running.decoding import generate_ids
from weightloom.runtime.running.sampling import Sampling


def main(path: str, how: str, temperature: float, dtype: str | None) -> None:
    """Print logits of twelve tokens, eight generated ids, and what this rank holds."""
    group = need_group()
    sharding = how if how in ("tensor", "pipeline") else Sharding(group.rank(), group.size(), json.loads(how))
    m = load(path, dtype, sharding=sharding)  # type: ignore[arg-type]
    assert m.share is not None
    ids = list(range(5, 17))
    logits: list[object] = m.model(mx.array([ids, ids[::-1]])).astype(mx.float32).tolist()  # type: ignore[assignment]
    made = list(generate_ids(m, ids, 8, Sampling(temperature)))
    print(json.dumps({"logits": logits, "ids": made, "held": m.share.held, "whole": m.share.whole, "notes": m.notes}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]), sys.argv[4] or None)
