sed -i 's|return f"{float(value):.2f}"|return f"{float(value) + 0.000001:.2f}"|' billing/money.py
