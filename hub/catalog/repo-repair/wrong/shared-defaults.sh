sed -i 's|rules=\[\]|rules=None|; s|self.rules = rules|self.rules = rules or []|' forms/field.py
sed -i 's|defaults={}|defaults=None|; s|self.values = defaults|self.values = defaults or {}|' forms/form.py
