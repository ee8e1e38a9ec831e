"""What stands in the editor where there is no file yet."""

from __future__ import annotations

from weightloom.runtime.authoring.subject import Subject


def starting_text(subject: Subject) -> str:
    """Give a rule file without rules: it is planned as it stands, and what ships acts behind it."""
    model_type = subject.config.get("model_type")
    named = model_type if isinstance(model_type, str) and model_type.isidentifier() else "my_model"
    return f"""\
# These rules act first, those that ship after them.
schema: 1
family: {named}_of_mine
applies_to: {{model_types: [{named}]}}
layouts:
  {subject.layout}:
    rules: []
    # rules:
    #   - rename: {{from: '^transformer\\.', to: 'model.'}}
"""
