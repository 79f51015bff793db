def reset(case, seed):
    """Return the state and the first messages of an episode."""
    word = case["target"]
    text = f"Guess my word of {len(word)} letters. Answer with a word alone. I say how many letters are in the right place."
    return {"state": {"word": word, "tries": 0}, "messages": [{"role": "user", "content": text}]}


def step(state, message):
    """Answer one message of the model. Fewer tries give a higher reward."""
    state["tries"] += 1
    guess = (message.get("content") or "").strip().lower()
    if guess == state["word"]:
        return {"state": state, "done": True, "reward": 1 / state["tries"]}
    if len(guess) != len(state["word"]) or state["tries"] == 6:
        return {"state": state, "done": True, "reward": 0.0}
    right = sum(a == b for a, b in zip(guess, state["word"]))
    return {"state": state, "messages": [{"role": "user", "content": f"{right} right."}]}
