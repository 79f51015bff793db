def check(case, state, transcript):
    wrong = {key: state[key] for key, value in case["target"].items() if state[key] != value}
    return {"score": not wrong, "reason": f"Expected {case['target']}, but found {wrong}." if wrong else "As expected."}
