"""HTML of parts of a source text that keeps where each part is in the source, and highlights marked spans."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import accumulate, pairwise

from hub.web.reading.characters import escaped, visible
from hub.web.reading.highlighting import TokenClass


@dataclass(frozen=True, slots=True)
class MarkedSpan:
    """Highlighted span of a source text: `kind` is judge, human or error-line, `label` its description.

    The stylesheet shows the label of an `error-line` below the line. It reads the label from an attribute, so that
    offsets do not change.
    """

    start: int
    end: int
    kind: str
    label: str


@dataclass(slots=True)
class SpanWriter:
    """Writer of HTML for parts of one source text.

    With `positions`, elements name the code point of the source at which their text begins (`data-at`), so that a
    script can translate a selection. `placed` collects the marks that became visible.
    """

    marks: Sequence[MarkedSpan] = ()
    positions: bool = False
    placed: set[MarkedSpan] = field(default_factory=set)

    def text(self, text: str, start: int | None, size: int | None = None) -> str:
        """Return *text*, which is found at *start* in the source. None: it is not in the source.

        *size* is the length of a text in the source that is written differently there, such as `&amp;`.
        """
        if start is None or not text:
            return escaped(text)
        end = start + (len(text) if size is None else size)
        over = [mark for mark in self.marks if mark.start < end and start < mark.end]
        if not over:
            html = escaped(text)
        elif size is not None:
            html = self._marked(escaped(text), over)
        else:
            html = self._pieces(text, start, (), over)
        return html if not self.positions else f"<span{self._position(start, size)}>{html}</span>"

    def code(self, text: str, classes: Sequence[TokenClass]) -> str:
        """Return highlighted code without positions and marks."""
        return self._pieces(text, None, classes, ())

    def lines(self, text: str, starts: Sequence[int | None], classes: Sequence[TokenClass] = ()) -> str:
        """Return each line of *text* in an element of its own, with its line break; *starts* are their positions."""
        html, at, offset = [], 0, 0
        for line, start in zip(split_lines(text), starts, strict=True):
            end = offset + len(line)
            inside: list[TokenClass] = []
            while at < len(classes) and classes[at][0] < end:
                inside.append((max(classes[at][0], offset) - offset, min(classes[at][1], end) - offset, classes[at][2]))
                if classes[at][1] > end:
                    break  # the token continues on the next line
                at += 1
            over: list[MarkedSpan] = []
            if start is not None:
                over = [mark for mark in self.marks if mark.start < start + len(line) and start < mark.end]
            html.append(f'<span class="line"{self._position(start)}>{self._pieces(line, start, inside, over)}</span>')
            html += [
                f'<span class="below-line" data-note="{escape(visible(mark.label))}"></span>'
                for mark in over
                if mark.kind == "error-line" and start is not None and mark.end <= start + len(line)
            ]
            offset = end
        return "".join(html)

    def _position(self, start: int | None, size: int | None = None) -> str:
        if not self.positions or start is None:
            return ""
        return f' data-at="{start}"' + ("" if size is None else f' data-size="{size}"')

    def _pieces(self, text: str, start: int | None, classes: Sequence[TokenClass], over: Sequence[MarkedSpan]) -> str:
        if not classes and not over:
            return escaped(text)
        base = start or 0
        cuts = {0, len(text)}
        cuts.update(cut for first, last, _ in classes for cut in (first, last))
        cuts.update(cut - base for mark in over for cut in (mark.start, mark.end) if 0 < cut - base < len(text))
        html, at = [], 0
        for first, last in pairwise(sorted(cuts)):
            while at < len(classes) and classes[at][1] <= first:
                at += 1
            piece = escaped(text[first:last])
            if at < len(classes) and classes[at][0] <= first:
                piece = f'<span class="{classes[at][2]}">{piece}</span>'
            covering = [mark for mark in over if mark.start <= base + first and base + last <= mark.end]
            html.append(self._marked(piece, covering))
        return "".join(html)

    def _marked(self, html: str, marks: Sequence[MarkedSpan]) -> str:
        for mark in marks:
            self.placed.add(mark)
            html = f'<mark class="{mark.kind}" title="{escape(visible(mark.label))}">{html}</mark>'
        return html


def split_lines(text: str) -> list[str]:
    """Return the lines of *text* with their line breaks; only `\\n` ends a line."""
    lines = text.split("\n")
    return [f"{line}\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] or len(lines) == 1 else [])


def line_starts(text: str, offset: int = 0) -> list[int]:
    """Return where each line of *text* begins, if the text begins at *offset*."""
    lengths = [len(line) for line in split_lines(text)]
    return list(accumulate(lengths[:-1], initial=offset))
