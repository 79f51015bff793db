"""The rule `choice`: the answer chooses the right option."""

import string
from typing import Literal

from pydantic import Field, field_validator, model_validator

from hub import extraction
from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict
from hub.scorers.comparison.texts import quoted


class ChoiceOptions(ScorerOptions):
    """`choices`: the options' texts. `labels`: their labels, by default A, B, C …

    `target_is`: whether `target` is the right option's `label`, its `index` from 0, or its `text`.
    """

    target: object = "{{ target }}"
    choices: list[str] = Field(default_factory=list)
    labels: list[str] = Field(default_factory=list)
    target_is: Literal["label", "index", "text"] = "label"

    @field_validator("choices", mode="before")
    @classmethod
    def _as_text(cls, value: object) -> object:
        return [str(choice) for choice in value] if isinstance(value, list) else value

    @model_validator(mode="after")
    def _right_one(self) -> "ChoiceOptions":
        if not self.labels:
            self.labels = list(string.ascii_uppercase[: len(self.choices) or 26])
        if self.choices and len(self.choices) != len(self.labels):
            raise ValueError(f"{len(self.choices)} choices have {len(self.labels)} labels")
        if self.right not in self.labels:
            raise ValueError(f"the target {self.target!r} is not the {self.target_is} of any choice")
        return self

    @property
    def right(self) -> str | None:
        """The label of the right choice, or None if the target names none."""
        if self.target_is == "index":
            index = int(str(self.target)) if str(self.target).isdigit() else -1
            return self.labels[index] if 0 <= index < len(self.labels) else None
        if self.target_is == "text":
            places = [i for i, choice in enumerate(self.choices) if choice == str(self.target)]
            return self.labels[places[0]] if places else None
        return str(self.target).strip()

    def is_right(self, label: str) -> bool:
        """Return whether *label* is that of the right choice, or of one with the same text."""
        texts = dict(zip(self.labels, self.choices, strict=False))
        return label == self.right or texts.get(label, label) == texts.get(str(self.right))


class Choice(Scorer[ChoiceOptions]):
    type = "choice"
    summary = "The answer chooses the right option."
    Options = ChoiceOptions

    async def score(self, options: ChoiceOptions, submission: Submission, services: Services) -> Verdict:
        found = extraction.choice(submission.text, options.labels, options.choices)
        if found is None:
            return Verdict.of(
                False, f"Expected {options.right}; the answer {quoted(submission.text[-100:])} chooses none."
            )
        return Verdict.of(options.is_right(found), f"Expected {options.right}, chosen was {found}.", found=found)
