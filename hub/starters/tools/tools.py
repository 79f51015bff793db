def reset(case, seed):
    """Return the state at the beginning of an episode. It is JSON, and each tool receives it."""
    return {"shelves": dict(case["row"]["shelves"])}


def count(state, shelf: str) -> int:
    """Return how many boxes are on a shelf.

    Args:
        shelf: The name of the shelf.
    """
    return state["shelves"][shelf]


def move(state, source: str, target: str, boxes: int) -> str:
    """Move boxes from one shelf to another.

    Args:
        source: The shelf that the boxes are on.
        target: The shelf that they are moved to.
        boxes: How many.
    """
    if boxes > state["shelves"][source]:
        raise ValueError(f"{source} has only {state['shelves'][source]} boxes")
    state["shelves"][source] -= boxes
    state["shelves"][target] += boxes
    return "moved"
