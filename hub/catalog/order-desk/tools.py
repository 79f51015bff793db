"""The order desk of Larkspur Outfitters. The tools do what they are told: keeping to the policy is the model's task."""

import json
from pathlib import Path
from typing import Literal

SHOP = json.loads(Path(__file__).with_name("shop.json").read_text(encoding="utf-8"))

RefundReason = Literal["changed_mind", "defective", "wrong_item"]


def reset(case, seed):
    """The shop as it stands this morning. `log` takes down every change, for the check."""
    return {"customers": SHOP["customers"], "orders": SHOP["orders"], "log": []}


def _order(state, order_id):
    if order_id not in state["orders"]:
        raise ValueError(f"There is no order {order_id}.")
    return state["orders"][order_id]


def _line(order, sku):
    for line in order["lines"]:
        if line["sku"] == sku:
            return line
    raise ValueError(f"The order has no item {sku}; it has {', '.join(line['sku'] for line in order['lines'])}.")


def _log(state, do, **details):
    state["log"].append({"do": do, **details})


# ---- looking up ------------------------------------------------------------------------------------------------------


def get_customer(state, customer_id: str) -> dict:
    """Look up a customer: name, e-mail and membership (standard or gold).

    Args:
        customer_id: For example C-201.
    """
    if customer_id not in state["customers"]:
        raise ValueError(f"There is no customer {customer_id}.")
    return {"customer_id": customer_id, **state["customers"][customer_id]}


def list_orders(state, customer_id: str) -> list:
    """List a customer's orders, newest first: number, status, date, and what was ordered.

    Args:
        customer_id: For example C-201.
    """
    found = [
        {
            "order_id": number,
            "status": order["status"],
            "placed": order["placed"],
            "items": [f"{line['quantity']} x {SHOP['products'][line['sku']]['name']}" for line in order["lines"]],
        }
        for number, order in state["orders"].items()
        if order["customer"] == customer_id
    ]
    return sorted(found, key=lambda order: (order["placed"], order["order_id"]), reverse=True)


def get_order(state, order_id: str) -> dict:
    """Look up an order: owner, status, dates, address, items with the list price of one piece, coupon and tracking code.

    Args:
        order_id: For example LK-5001.
    """
    order = _order(state, order_id)
    lines = [{**line, "name": SHOP["products"][line["sku"]]["name"]} for line in order["lines"]]
    return {"order_id": order_id, **order, "lines": lines}


def search_products(query: str) -> list:
    """Find products by words of their name. Gives SKU, name, price, stock, and whether it is final sale or personalised.

    Args:
        query: Words that all occur in the name, for example "ridge jacket".
    """
    words = query.lower().split()
    return [
        {"sku": sku, **product}
        for sku, product in SHOP["products"].items()
        if all(word in product["name"].lower() for word in words)
    ]


def get_coupon(code: str) -> dict:
    """Look up a coupon code: percentage, last day of validity, and the least item total it needs.

    Args:
        code: As the customer writes it, for example SPRING10.
    """
    if code.upper() not in SHOP["coupons"]:
        raise ValueError(f"There is no coupon {code}.")
    return {"code": code.upper(), **SHOP["coupons"][code.upper()]}


# ---- changing an order -----------------------------------------------------------------------------------------------


def change_address(state, order_id: str, street: str, postcode: str, city: str, country: str) -> str:
    """Send an order to another address.

    Args:
        order_id: The order's number.
        street: Street and house number.
        postcode: Postcode.
        city: Town.
        country: Two letters, such as NL.
    """
    order = _order(state, order_id)
    order["address"] = {"street": street, "postcode": postcode, "city": city, "country": country}
    _log(state, "change_address", order=order_id, **order["address"])
    return f"Order {order_id} goes to {street}, {postcode} {city}, {country}."


def cancel_order(state, order_id: str) -> str:
    """Cancel a whole order. The money goes back by itself.

    Args:
        order_id: The order's number.
    """
    _order(state, order_id)["status"] = "cancelled"
    _log(state, "cancel_order", order=order_id)
    return f"Order {order_id} is cancelled."


def remove_item(state, order_id: str, sku: str) -> str:
    """Take one kind of item out of an order, all pieces of it.

    Args:
        order_id: The order's number.
        sku: The item's SKU.
    """
    order = _order(state, order_id)
    order["lines"].remove(_line(order, sku))
    _log(state, "remove_item", order=order_id, sku=sku)
    return f"Item {sku} was taken out of order {order_id}."


def apply_coupon(state, order_id: str, code: str) -> str:
    """Apply a coupon to an order.

    Args:
        order_id: The order's number.
        code: The coupon's code.
    """
    coupon = get_coupon(code)
    _order(state, order_id)["coupon"] = coupon["code"]
    _log(state, "apply_coupon", order=order_id, code=coupon["code"])
    return f"Coupon {coupon['code']} takes {coupon['percent']} % off order {order_id}."


def add_note(state, order_id: str, text: str) -> str:
    """Add a delivery instruction to an order, for the carrier.

    Args:
        order_id: The order's number.
        text: The instruction.
    """
    _order(state, order_id)["notes"].append(text)
    _log(state, "add_note", order=order_id, text=text)
    return f"The note was added to order {order_id}."


# ---- after delivery --------------------------------------------------------------------------------------------------


def refund_item(state, order_id: str, sku: str, quantity: int, amount: float, reason: RefundReason) -> str:
    """Refund pieces of one kind of item of an order.

    Args:
        order_id: The order's number.
        sku: The item's SKU.
        quantity: How many pieces.
        amount: What is paid back in all, in euros, fee taken off.
        reason: Why it comes back.
    """
    line = _line(_order(state, order_id), sku)
    if not 1 <= quantity <= line["quantity"]:
        raise ValueError(f"The order has {line['quantity']} of {sku}.")
    line["refunded"] = line.get("refunded", 0) + quantity
    _log(state, "refund_item", order=order_id, sku=sku, quantity=quantity, amount=amount, reason=reason)
    return f"{amount:.2f} EUR go back to the customer."


def exchange_item(state, order_id: str, sku: str, new_sku: str) -> str:
    """Exchange one kind of item of an order, all pieces of it, for another SKU.

    Args:
        order_id: The order's number.
        sku: The SKU that comes back.
        new_sku: The SKU that is sent instead.
    """
    line = _line(_order(state, order_id), sku)
    if new_sku not in SHOP["products"]:
        raise ValueError(f"There is no product {new_sku}.")
    line["exchanged_for"] = new_sku
    _log(state, "exchange_item", order=order_id, sku=sku, new_sku=new_sku)
    return f"{new_sku} will be sent in place of {sku}."


def issue_goodwill(state, order_id: str) -> str:
    """Send the customer a goodwill coupon of 10.00 EUR for an order that came late.

    Args:
        order_id: The order that came late.
    """
    _order(state, order_id)["goodwill"] = True
    _log(state, "issue_goodwill", order=order_id)
    return f"A goodwill coupon of 10.00 EUR was sent for order {order_id}."


# ---- handing on and turning down -------------------------------------------------------------------------------------


def escalate(
    state,
    reason: Literal["high_value_refund", "safety", "legal", "payment_dispute"],
    order_id: str,
    summary: str,
) -> str:
    """Hand an order to a human colleague.

    Args:
        reason: Why.
        order_id: The order it is about.
        summary: What the colleague should know, in a sentence.
    """
    _order(state, order_id)
    _log(state, "escalate", reason=reason, order=order_id, summary=summary)
    return "A colleague will take over within one working day."


def decline(
    state,
    reason: Literal[
        "not_owner",
        "already_shipped",
        "not_delivered",
        "other_country",
        "personalised",
        "final_sale",
        "too_late",
        "coupon_not_valid",
        "out_of_stock",
        "different_product",
        "no_goodwill",
    ],
    order_id: str,
) -> str:
    """Take down that a request was turned down, once for each such request.

    Args:
        reason: The rule of the policy that stands in its way.
        order_id: The order it is about.
    """
    _order(state, order_id)
    _log(state, "decline", reason=reason, order=order_id)
    return "Taken down."
