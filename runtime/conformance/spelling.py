"""What an architecture owes to configs of other tools: the same model, whatever words say it."""

from __future__ import annotations

import json
import shutil
from typing import Any

from weightloom.plugins.modules.binding import parameters
from weightloom.runtime.configs.config import NAME
from weightloom.runtime.conformance.answering import answers, answers_in_parts
from weightloom.runtime.conformance.comparing import assert_close, assert_same_arrays, assert_same_weights
from weightloom.runtime.conformance.sample import Array, Spelling
from weightloom.runtime.conformance.subject import Subject
from weightloom.runtime.loading.loading import load
from weightloom.runtime.model import LoadedModel


def other_spellings_say_the_same(subject: Subject) -> float:
    """Under each other form of its config a checkpoint answers the same, whole and cached, and saves as it was."""
    return max(_distance(subject, each) for each in subject.sample.spellings)


def _distance(subject: Subject, spelling: Spelling) -> float:
    folder, saved = subject.new_folder(), subject.new_folder()
    shutil.copytree(subject.folder, folder)
    spelt = json.dumps(dict(spelling(json.loads((folder / NAME).read_bytes()))), indent=2).encode()
    (folder / NAME).write_bytes(spelt)
    m = load(folder)
    assert_same_arrays(parameters(m.model), subject.params)
    m.save(saved)
    assert_same_weights(saved, folder)
    assert (saved / NAME).read_bytes() == spelt, "a save changed config.json"
    return max(assert_close(each, subject.answers, subject.sample.tolerance) for each in _answers(m, subject))


def _answers(m: LoadedModel, subject: Subject) -> list[Array]:
    model: Any = m.model
    tokens = subject.tokens()
    whole = answers(model, tokens)
    return [whole] if m.task != "generate" else [whole, answers_in_parts(model, tokens, model.make_cache())]
