"""The rule `custom`: a function of the bundle, with arguments of the rule, scores the episode, in the sandbox."""

from typing import Annotated

from pydantic import Field

from hub.scorers.state import StateScorer, StateScorerOptions


class CustomScorerOptions(StateScorerOptions):
    """Options of `state`, and `function`: the function's name; `arguments`: additional keyword arguments."""

    function: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*$")] = "check"
    arguments: dict[str, object] = Field(default_factory=dict)


class CustomScorer(StateScorer):
    type = "custom"
    summary = "A function of the bundle is called with case, state, transcript and the rule's arguments."
    Options = CustomScorerOptions

    def function_of(self, options: StateScorerOptions) -> tuple[str, dict[str, object]]:
        assert isinstance(options, CustomScorerOptions)
        return options.function, options.arguments
