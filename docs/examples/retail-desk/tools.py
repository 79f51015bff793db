import json
from pathlib import Path


def reset(case, seed):
    return json.loads(Path("world.json").read_text())


def find_customer(state, email: str) -> dict:
    """Find a customer with the numbers of the orders."""
    if email not in state["customers"]:
        raise ValueError("There is no customer with this address.")
    return state["customers"][email]


def get_order(state, order: str) -> dict:
    """Look an order up."""
    if order not in state["orders"]:
        raise ValueError(f"There is no order {order}.")
    return state["orders"][order]


def cancel_order(state, order: str) -> str:
    """Cancel an order and refund all of it."""
    found = get_order(state, order)
    found["status"] = "cancelled"
    found["refund"] = sum(state["prices"][item] for item in found["items"])
    return f"{found['refund']} EUR are refunded."


def return_item(state, order: str, item: str) -> str:
    """Take one item of an order back and refund its price."""
    found = get_order(state, order)
    if found["items"].get(item) != "ordered":
        raise ValueError(f"{order} has no {item} that could be returned.")
    found["items"][item] = "returned"
    found["refund"] += state["prices"][item]
    return f"{state['prices'][item]} EUR are refunded."


def refuse(state, order: str) -> str:
    """Record that the policy forbids what the customer wants for an order."""
    get_order(state, order)
    state["refused"].append(order)
    return "Recorded."
