"""Client of an LLM-Eval server for trainers: episodes, groups of episodes, scores and exports."""

from llmeval_client.asynchronous import AsyncClient, AsyncEpisode
from llmeval_client.environment import EpisodeEnvironment
from llmeval_client.requests import LLMEvalError, ServerError, Unreachable
from llmeval_client.synchronous import Client, Episode
from llmeval_client.types import Case, Message, ScoredConversation, StepResult, Tokens, Tool, Usage

__all__ = [
    "AsyncClient",
    "AsyncEpisode",
    "Case",
    "Client",
    "Episode",
    "EpisodeEnvironment",
    "LLMEvalError",
    "Message",
    "ScoredConversation",
    "ServerError",
    "StepResult",
    "Tokens",
    "Tool",
    "Unreachable",
    "Usage",
]
