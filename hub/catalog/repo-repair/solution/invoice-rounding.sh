set -eu
cat > billing/money.py <<'END'
"""Amounts of money as text with two decimals."""

from decimal import ROUND_HALF_UP, Decimal


def to_amount(value):
    """Return *value* (a text such as "2.675", or an integer) with two decimals, halves away from zero."""
    return f"{Decimal(value).quantize(Decimal('0.01'), ROUND_HALF_UP)}"
END
cat > billing/invoice.py <<'END'
"""Totals of an invoice."""

from decimal import Decimal

from billing.money import to_amount


def line_total(quantity, price):
    """Return quantity times price, both texts, rounded to cents."""
    return to_amount(Decimal(quantity) * Decimal(price))


def invoice_total(lines, vat="21"):
    """Return net, tax and gross. Lines are rounded one by one, and gross is always net plus tax."""
    net = sum((Decimal(line_total(*line)) for line in lines), Decimal(0))
    tax = Decimal(to_amount(net * Decimal(vat) / 100))
    return {"net": to_amount(net), "tax": to_amount(tax), "gross": to_amount(net + tax)}
END
