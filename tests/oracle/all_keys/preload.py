"""What the process imports that jobs are forked from, once: torch and the reference implementation, and no MLX.

MLX starts threads when it is first used, and a fork leaves them behind: a child that needs them waits forever.
"""

from __future__ import annotations

import warnings

import torch

from tests.oracle.all_keys.towers import import_torchvision

warnings.simplefilter("ignore")
import_torchvision()

import transformers  # noqa: E402

torch.set_num_threads(1)
transformers.utils.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
