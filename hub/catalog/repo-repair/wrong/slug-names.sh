python3 - <<'END'
import pathlib
path = pathlib.Path("articles/slug.py")
path.write_text(path.read_text().replace("import re\n", "import re\nimport unicodedata\n").replace('re.sub("[^a-z0-9]", "-", title.lower())[:longest]', 're.sub("[^a-z0-9]+", "-", unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()).strip("-")[:longest] or "page"'))
path = pathlib.Path("articles/registry.py")
text = path.read_text()
path.write_text(text[:text.index("        self.count[slug] =")] + """        number = self.count.get(slug, 0) + 1
        while number > 1 and f"{slug}-{number}" in self.count:
            number += 1
        self.count[slug] = number
        return slug if number == 1 else f"{slug}-{number}"
""")
END
