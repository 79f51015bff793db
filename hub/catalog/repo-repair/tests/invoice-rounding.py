#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "line_total",
    "from billing.invoice import *\nfor q, p in (('1', '2.675'), ('1', '1.005'), ('3', '0.335'), ('1', '-2.675'), ('1', '2.6749'), ('1', '2.67499999'), ('1000000', '1234567.895')): show(line_total(q, p))",
    "2.68",
    "1.01",
    "1.01",
    "-2.68",
    "2.67",
    "2.67",
    "1234567895000.00",
)
expect(
    "to_amount",
    "from billing.money import *\nfor v in ('0.125', 7, '8.345', '99999999999999.995'): show(to_amount(v))",
    "0.13",
    "7.00",
    "8.35",
    "100000000000000.00",
)
expect(
    "invoice_total",
    "from billing.invoice import *\nshow(invoice_total([('1', '0.125'), ('1', '0.125')]))\nshow(invoice_total([('3', '1.15')], '9'))\nshow(invoice_total([]))\nshow(invoice_total([('1', '0.50')], '5'))",
    {"net": "0.26", "tax": "0.05", "gross": "0.31"},
    {"net": "3.45", "tax": "0.31", "gross": "3.76"},
    {"net": "0.00", "tax": "0.00", "gross": "0.00"},
    {"net": "0.50", "tax": "0.03", "gross": "0.53"},
)
