"""Plugin of verifiers: `vf-eval llmeval-verifiers --env.taskset.environment order-desk`."""

from llmeval_client.verifiers import EpisodeEnv, EpisodeHarness, EpisodeTaskset

__all__ = ["EpisodeEnv", "EpisodeHarness", "EpisodeTaskset"]
