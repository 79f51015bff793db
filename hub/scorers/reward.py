"""The rule `reward`: the harness's own reward is the score."""

from hub.harnesses.base import Services
from hub.scorers.base import Scorer, ScorerOptions, Submission, Verdict, rounded_score


class Reward(Scorer[ScorerOptions]):
    """Scorer that is used if an environment names no rules."""

    type = "reward"
    summary = "The harness's own reward, from 0 to 1; 0 for an episode that ended at a limit without one."
    Options = ScorerOptions

    async def score(self, options: ScorerOptions, submission: Submission, services: Services) -> Verdict:
        reward = submission.reward
        if reward is None and submission.stop != "done":
            # Most harnesses reward success only, so an episode that a limit ended has earned nothing.
            return Verdict(
                value=0.0,
                reason=f"The episode ended at its limit ({submission.stop}), and the harness gave no reward: "
                "it counts as 0.",
            )
        if reward is None:
            return Verdict(value=None, reason="The harness gave no reward.")
        value = rounded_score(reward)
        if value is None:
            return Verdict(value=None, reason=f"The harness's reward {reward:g} is not between 0 and 1.")
        return Verdict(value=value, reason=f"The harness's reward is {reward:g}.")
