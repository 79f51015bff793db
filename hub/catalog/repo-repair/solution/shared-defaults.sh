set -eu
sed -i 's|rules=\[\]|rules=()|; s|self.rules = rules|self.rules = list(rules)|' forms/field.py
sed -i 's|defaults={}|defaults=None|; s|self.values = defaults|self.values = dict(defaults or {})\n        self.errors = {}|; /^    errors = {}/,+1d; s|        for field in self.fields:|        self.errors = {}\n        for field in self.fields:|' forms/form.py
