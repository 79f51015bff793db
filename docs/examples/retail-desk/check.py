import json
from pathlib import Path


def check(case, state, transcript):
    """Compare the final world with the first one after the changes of the case: {"orders.L1.refund": 40}."""
    expected = json.loads(Path("world.json").read_text())
    for path, value in case["row"]["changes"].items():
        *parents, key = path.split(".")
        place = expected
        for name in parents:
            place = place[name]
        place[key] = value
    for part in expected:
        if state[part] != expected[part]:
            return {"score": 0, "reason": f"{part}: {json.dumps(state[part])}, expected {json.dumps(expected[part])}"}
    spoken = " ".join(message.get("content") or "" for message in transcript if message["role"] == "assistant")
    missing = [word for word in case["row"]["says"] if word not in spoken]
    return {"score": not missing, "reason": f"The customer was not told: {missing}." if missing else "As expected."}
