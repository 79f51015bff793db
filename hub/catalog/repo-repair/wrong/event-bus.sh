sed -i 's|in self.handlers.get(name, \[\]):|in list(self.handlers.get(name, [])):|' bus/core.py
sed -i 's|lambda value: seen|lambda value, name=name: seen|' bus/log.py
