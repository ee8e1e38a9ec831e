"""One rank of several, with adapters: say what came out with them, and without, as JSON."""

import json
import sys
from typing import Any

import mlx.core as mx

from weightloom.engine import Sharding
from weightloom.engine.errors import UsageError
from weightloom.runtime import load
from weightloom.runtime.loading.ranks import need_group

TOKENS = mx.array([[3, 1, 4, 1, 5, 9, 2, 6], [2, 7, 1, 8, 2, 8, 1, 8]])


def main(path: str, how: str, adapters: list[str]) -> None:
    group = need_group()
    sharding: Any = how if how in ("tensor", "pipeline") else Sharding(group.rank(), group.size(), json.loads(how))
    m = load(path, sharding=sharding, adapter=[(each, 1.0) for each in adapters])
    assert m.adapters is not None
    found = {"with": m.model(TOKENS).tolist()}
    held = sum(array.size for each in m.adapters.names for array in m.adapters.read(each).arrays.values())
    m.adapters.use()
    found["without"] = m.model(TOKENS).tolist()
    try:
        m.save_adapter(f"{path}-again", m.adapters.names[0])
    except UsageError as error:
        found["refusal"] = error.seen
    print(json.dumps({**found, "held": held}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
