def check(case, state, transcript):
    """Return the score of an episode from the state that is left."""
    return {"score": state["shelves"] == case["target"], "reason": f"The shelves have {state['shelves']}."}
