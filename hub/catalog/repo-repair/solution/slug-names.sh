set -eu
cat > articles/slug.py <<'END'
"""Slugs: the part of an address that is made from a title."""

import re
import unicodedata


def to_slug(title, longest=40):
    """Return lower-case letters a to z, digits and single hyphens between words; accents are taken off letters.

    At most *longest* characters, without a hyphen at either end. A title that leaves nothing gives "page".
    """
    plain = "".join(c for c in unicodedata.normalize("NFKD", title) if not unicodedata.combining(c))
    return re.sub("[^a-z0-9]+", "-", plain.lower()).strip("-")[:longest].rstrip("-") or "page"
END
python3 - <<'END'
import pathlib
path = pathlib.Path("articles/registry.py")
text = path.read_text().replace("self.count = {slug: 1 for slug in taken}", "self.taken = set(taken)")
path.write_text(text[:text.index("        self.count[slug]")] + """        found, number = slug, 1
        while found in self.taken:
            number += 1
            end = f"-{number}"
            found = slug[: longest - len(end)].rstrip("-") + end
        self.taken.add(found)
        return found
""")
END
