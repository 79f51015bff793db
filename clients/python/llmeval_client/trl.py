"""GRPO with TRL: a dataset of cases, reward functions, and environments whose tools are methods.

Needs the package `datasets`. `llmeval_client.trl_rollouts` has rollouts with several turns, which need all of TRL.
"""

import inspect
import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, cast

from datasets import Dataset, Features, Json, List, Value

from llmeval_client.state import assistant
from llmeval_client.synchronous import Client, Episode
from llmeval_client.types import Message, StepResult, Tool

logger = logging.getLogger(__name__)

Rewards = list[float | None]
_BATCH = 256  # conversations per request
_RESERVED = {"reset", "get_reward"}
# Messages are stored as JSON. A column of structs would give each message the keys of all others, and could not be
# concatenated with one that has other keys.
_FEATURES = {"prompt": List(Json()), "environment": Value("string"), "case": Value("string"), "split": Value("string")}
_TYPES: dict[str, object] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list,
    "object": dict,
}


def create_dataset(client: Client, environment: str, **which: object) -> Dataset:
    """Return the cases of *environment* with the columns prompt, environment, case and split.

    *prompt* has the opening messages with all their fields. Arguments of tool calls are objects. Contents are text; if
    a message of any case has parts other than text, such as images, all contents are lists of parts. *which*: split,
    seed and roles, as in `Client.cases`. Datasets of several environments can be concatenated.
    """
    cases = client.cases(environment, **which)
    as_parts = any(_has_other_parts(message) for case in cases for message in case.messages)
    to_content = _parts if as_parts else content_text
    prompts = [
        [{**template_message(message), "content": to_content(message.get("content"))} for message in case.messages]
        for case in cases
    ]
    return Dataset.from_dict(
        {
            "prompt": prompts,
            "environment": [environment] * len(cases),
            "case": [case.id for case in cases],
            "split": [case.split for case in cases],
        },
        features=Features(_FEATURES),
    )


def template_message(message: Message) -> Message:
    """Return *message* as chat templates expect it: with a content, and arguments of tool calls as objects."""
    calls = cast("Sequence[Mapping[str, Mapping[str, object]]]", message.get("tool_calls") or [])
    rendered: Message = {**message, "content": message.get("content") or ""}
    if calls:
        rendered["tool_calls"] = [
            {**call, "function": {**call["function"], "arguments": _arguments(call["function"].get("arguments"))}}
            for call in calls
        ]
    return rendered


def _arguments(given: object) -> object:
    if not isinstance(given, str):
        return given or {}
    try:
        return json.loads(given)
    except ValueError:
        return given


def content_text(content: object) -> str:
    """Return the text of a content, which may be a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in _parts(content) if part.get("type") == "text")


def _parts(content: object) -> Sequence[Mapping[str, object]]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return cast("Sequence[Mapping[str, object]]", content or [])


def _has_other_parts(message: Message) -> bool:
    return any(part.get("type") != "text" for part in _parts(message.get("content")))


def create_reward_function(client: Client, **which: object) -> Callable[..., Rewards]:
    """Return a reward function that scores completions with `POST score`; *which*: seed, roles.

    The dataset must have the columns environment and case. A completion that could not be scored gets None, which
    TRL leaves out. In environments with tools or several turns, the assistant messages of a completion are
    executed again; the other messages are ignored.
    """

    def episode_score(
        completions: Sequence[str | Sequence[Message]], environment: Sequence[str], case: Sequence[str], **_: object
    ) -> Rewards:
        rewards: Rewards = [None] * len(completions)
        indexes: dict[str, list[int]] = defaultdict(list)
        for index, name in enumerate(environment):
            indexes[name].append(index)
        for name, listed in indexes.items():
            for start in range(0, len(listed), _BATCH):
                part = listed[start : start + _BATCH]
                scores = client.score(name, [(case[i], wire_messages(completions[i])) for i in part], **which)
                for index, score in zip(part, scores, strict=True):
                    if score.error:
                        logger.warning("A completion of %s, case %s, has no score: %s", name, score.case, score.error)
                    elif score.status != "unscored":
                        rewards[index] = score.reward
        return rewards

    return episode_score


def wire_messages(completion: str | Sequence[Message]) -> list[Message]:
    """Return a completion of TRL as messages of chat completions: text, or messages whose tool calls have no ids."""
    if isinstance(completion, str):
        return [assistant(completion)]
    return [_wire_message(message, number) for number, message in enumerate(completion)]


def _wire_message(message: Message, number: int) -> Message:
    """Return *message* with ids of its calls, their arguments as JSON text, and reasoning as `reasoning_content`."""
    calls = cast("Sequence[Mapping[str, Mapping[str, object]]]", message.get("tool_calls") or [])
    wired: Message = {"role": message.get("role", "assistant"), "content": content_text(message.get("content"))}
    reasoning = message.get("reasoning_content") or message.get("thinking")  # TRL has the name of the model's template
    if reasoning:
        wired["reasoning_content"] = reasoning
    if calls:
        wired["tool_calls"] = [
            {"id": call.get("id") or f"call_{number}_{index}", "type": "function", "function": _wire_function(call)}
            for index, call in enumerate(calls)
        ]
    return wired


def _wire_function(call: Mapping[str, Mapping[str, object]]) -> dict[str, object]:
    arguments = call["function"].get("arguments", {})
    return {
        "name": call["function"]["name"],
        "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
    }


class ToolEnvironment:
    """Environment of one rollout at a time for TRL's `environment_factory`. Subclasses have a method per tool.

    TRL tells an environment neither the text of the model nor the end of the rollout: `environment_reward` does. Every
    public method except `reset` is offered to the model, so all others are private.
    """

    def __init__(self, client: Client, environment: str, which: Mapping[str, object]) -> None:
        self._client = client
        self._environment = environment
        self._which = dict(which)
        self._episode: Episode | None = None

    def reset(self, *, case: str, **row: object) -> None:
        """Start an episode of *case*, and delete the earlier one if it is open. The prompt is that of the dataset."""
        if self._episode is not None and not self._episode.done:
            self._episode.delete()
        self._episode = self._client.start(self._environment, case=case, **self._which)

    def _finish(self, text: str) -> StepResult:
        """End the episode with the last message of the model, and return its result.

        If the environment has a further turn, for example of its user, it is scored as truncated.
        """
        episode = self._open()
        if not episode.done:
            episode.step(text)
        if not episode.done:
            episode.finish("other")
        assert episode.result is not None
        return episode.result

    def _call(self, name: str, arguments: Mapping[str, object]) -> str:
        """Call a tool and return its result, which may describe an error. Raises RuntimeError after the end."""
        episode = self._open()
        if episode.done:
            raise RuntimeError("The episode is over.")
        given = {key: value for key, value in arguments.items() if value is not None}
        call = {"type": "function", "function": {"name": name, "arguments": given}}
        result = episode.step(_wire_message({"role": "assistant", "tool_calls": [call]}, episode.turn))
        return "\n".join(
            content_text(message.get("content")) for message in result.messages if message["role"] == "tool"
        )

    def _open(self) -> Episode:
        if self._episode is None:
            raise RuntimeError("Call reset first.")
        return self._episode


def create_environment_class(client: Client, environment: str, **which: object) -> type[ToolEnvironment]:
    """Return a class for `environment_factory` with a method for each tool of *environment*.

    *which*: keys of every new episode, such as seed, roles and model. If tools differ between cases, all are offered;
    the environment rejects calls of tools that a case does not have.

    Raises ValueError if the environment has no tools, or a tool cannot be a method.
    """
    cases = client.cases(environment, **{key: value for key, value in which.items() if key in ("seed", "roles")})
    tools = {str(_function(tool)["name"]): tool for case in cases for tool in case.tools}
    if not tools:
        raise ValueError(f"{environment} has no tools. Train on it without `environment_factory`.")

    def start(self: ToolEnvironment) -> None:
        ToolEnvironment.__init__(self, client, environment, which)

    methods = {name: _tool_method(name, tool) for name, tool in tools.items()}
    return type("EpisodeTools", (ToolEnvironment,), {"__init__": start, **methods})


def environment_reward(
    completions: Sequence[Sequence[Message]], environments: Sequence[ToolEnvironment], **_: object
) -> Rewards:
    """Reward function for training with `environment_factory`: end each episode and return its reward."""
    rewards: Rewards = []
    for completion, environment in zip(completions, environments, strict=True):
        last = completion[-1]
        final = last.get("content") if last.get("role") == "assistant" and not last.get("tool_calls") else ""
        result = environment._finish(content_text(final))
        rewards.append(None if result.status == "unscored" else result.reward)
    return rewards


def _function(tool: Tool) -> Mapping[str, object]:
    return cast("Mapping[str, object]", tool["function"])


def _tool_method(name: str, tool: Tool) -> Callable[..., str]:
    """Return a method with the parameters of *tool*, whose docstring has the format that transformers reads."""
    schema = cast("Mapping[str, object]", _function(tool).get("parameters") or {})
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties") or {})
    required = set(cast("Sequence[str]", schema.get("required") or ()))
    unusable = [word for word in (name, *properties) if not word.isidentifier() or word == "self"]
    if unusable or name in _RESERVED or name.startswith("_"):
        raise ValueError(f"The tool {name} cannot be a method: {', '.join(unusable) or name} is not a possible name.")

    def method(self: ToolEnvironment, *positional: object, **named: object) -> str:
        given = signature.bind(self, *positional, **named).arguments
        given.pop("self")
        return self._call(name, given)

    hints = {key: _hint(value, key in required) for key, value in properties.items()}
    ordered = sorted(properties, key=lambda key: key not in required)  # parameters with a default follow the others
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature(
        [
            inspect.Parameter("self", kind),
            *(
                inspect.Parameter(
                    key, kind, annotation=hints[key], default=inspect.Parameter.empty if key in required else None
                )
                for key in ordered
            ),
        ],
        return_annotation=str,
    )
    described = [f"    {key}: {_one_line(properties[key].get('description')) or key}" for key in ordered]
    summary = _one_line(_function(tool).get("description")) or name
    method.__name__ = name
    method.__qualname__ = f"EpisodeTools.{name}"
    method.__doc__ = "\n".join([summary, "", *(["Args:", *described, ""] if described else [])]) + "\n"
    method.__annotations__ = {**{key: hints[key] for key in ordered}, "return": str}
    method.__signature__ = signature  # type: ignore[attr-defined]
    return method


def _hint(schema: Mapping[str, object], required: bool) -> object:
    """Return the type hint of a parameter; one that transformers turns back into the same JSON type."""
    values = schema.get("enum")
    kind = schema.get("type")
    hint: object
    if isinstance(values, list) and values and all(isinstance(value, str) for value in values):
        hint = Literal[tuple(values)]
    elif kind == "array":
        items = schema.get("items")
        hint = list[_hint(items, True)] if isinstance(items, dict) else list  # type: ignore[misc]
    else:
        hint = _TYPES.get(kind, str) if isinstance(kind, str) else str
    return hint if required else hint | None  # type: ignore[operator]


def _one_line(text: object) -> str:
    """Return *text* on one line, because an indented line would be read as another parameter."""
    return " ".join(str(text or "").split())
