"""IFEval's own checks, for the kinds where they differ from the standard ones.

The published checker (Zhou et al. 2023) counts sentences and words with NLTK's English Punkt model and detects
languages with langdetect. Here Punkt's algorithm is used with a list of English abbreviations and words instead of
that model, whose data may not be redistributed. langdetect is used with a fixed seed, so that verdicts do not change.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from hub.scorers.constraints import formats, keywords, lengths, wording
from hub.scorers.constraints.base import Constraint, counted

if TYPE_CHECKING:
    from nltk.tokenize import NLTKWordTokenizer
    from nltk.tokenize.punkt import PunktSentenceTokenizer

_READ = 20_000  # characters given to the language detector

# American English, as newspapers write it: Punkt's published model was trained on the Wall Street Journal. It knows
# neither "e.g." nor "i.e." nor "etc.", which therefore end a sentence, as they do in IFEval's counts.
_ABBREVIATIONS = (
    "mr mrs ms dr prof st jr sr rev gen col maj capt lt sgt sen rep reps messrs hon vs inc corp co cos ltd bros "
    "ave jan feb aug sept sep oct nov dec mon tues tue wed thurs thu fri sat a.m p.m u.s u.k u.n u.s.a u.s.s.r "
    "e.u d.c n.y n.j n.c s.c n.h n.m n.d s.d w.va l.a ph.d m.d m.b.a b.a ala ariz ark calif cal colo conn del fla "
    "ga ill ind kan ky mass md mich minn miss mo mont neb nev okla ore pa penn tenn tex va vt wash wis wyo adm "
    "cie ct ft mg ok "
)
_WORDS = (
    "a about above according across after again against all almost already also although always am among an and "
    "another any anyone anything are around as ask at away back be because been before being below between big "
    "both but by call can change children choose city come consider could country create day days did different "
    "do does doing done down during each early eat either else end enough even every everyone everything example "
    "explore family feel few find first follow food for found friends from full further get give go good great "
    "had has have having he help her here high him his home house how however i if important in include indeed "
    "instead into is it its job just keep know last later learn leave less let life like likewise little long "
    "look made make man many may maybe me mean meanwhile might money more moreover most much must my near need "
    "never new next nevertheless no nor not nothing now of off often on once one only open or other others our "
    "out over own part people perhaps place plan please point put read remember right room run said same say "
    "school see seem set several she should show similarly since small so some someone something sometimes soon "
    "start still stop such take talk than thank that the their them then there therefore these they thing things "
    "think this those though three through thus time to today together too toward travel try turn two under until "
    "up upon us use used using very visit want was water way we week well were what when where whether which "
    "while who whose why will with within without work world would write year years yes yet you your "
)


@lru_cache(maxsize=1)
def _punkt() -> "PunktSentenceTokenizer":
    from nltk.tokenize.punkt import PunktSentenceTokenizer, PunktTrainer  # slow, and needed by few runs

    # Punkt learns from words in lower case: with a capital, they begin a sentence.
    trainer = PunktTrainer()
    trainer.train(_WORDS + ".", finalize=True)
    parameters = trainer.get_params()
    parameters.abbrev_types = set(_ABBREVIATIONS.split())
    return PunktSentenceTokenizer(parameters)


@lru_cache(maxsize=1)
def _word_tokenizer() -> "NLTKWordTokenizer":
    from nltk.tokenize import NLTKWordTokenizer

    return NLTKWordTokenizer()


@lru_cache(maxsize=1)
def _detector() -> Callable[[str], str]:
    from langdetect import DetectorFactory, LangDetectException, detect

    DetectorFactory.seed = 0

    def language(text: str) -> str:
        try:
            return str(detect(text[:_READ]))
        except LangDetectException:  # the text has no letters
            return ""

    return language


def sentences(text: str) -> list[str]:
    """Return sentences as NLTK's Punkt splits them: a list's "1." before a capital is a sentence."""
    return list(_punkt().tokenize(text))


def words(text: str) -> list[str]:
    """Return words as NLTK's `word_tokenize` splits them: "U.S." and "NASA-led" are one each."""
    return [word for sentence in sentences(text) for word in _word_tokenizer().tokenize(sentence)]


class IFEvalWords(lengths.Words):
    def problem(self, text: str) -> str:
        return counted("words", len(re.findall(r"\w+", text)), self.relation, self.num_words)


class IFEvalSentences(lengths.Sentences):
    def problem(self, text: str) -> str:
        return counted("sentences", len(sentences(text)), self.relation, self.num_sentences)


class IFEvalCapitalWords(wording.CapitalWords):
    def problem(self, text: str) -> str:
        capitals = [word for word in words(text) if word.isupper()]
        return counted("words in capitals", len(capitals), self.capital_relation, self.capital_frequency)


class IFEvalResponseLanguage(wording.ResponseLanguage):
    def problem(self, text: str) -> str:
        return _other_than(self.language, text)


class IFEvalEnglishCapital(wording.EnglishCapital):
    def problem(self, text: str) -> str:
        return _other_than("en", text) if text.isupper() else super().problem(text)


class IFEvalEnglishLowercase(wording.EnglishLowercase):
    def problem(self, text: str) -> str:
        return _other_than("en", text) if text.islower() else super().problem(text)


class IFEvalParagraphs(lengths.Paragraphs):
    def without_emphasis(self, text: str) -> str:
        return text


class IFEvalNthParagraph(lengths.NthParagraph):
    def problem(self, text: str) -> str:
        parts = text.split("\n\n")
        count = sum(1 for part in parts if part.strip())
        if count != self.num_paragraphs:
            return counted("paragraphs", count, "exactly", self.num_paragraphs)
        words = parts[self.nth_paragraph - 1].split()
        said = words[0].lstrip("'").lstrip('"') if words else ""
        said = said[: next((i for i, character in enumerate(said) if character in ".,?!'\""), len(said))].lower()
        if said == self.first_word.lower():
            return ""
        return f"paragraph {self.nth_paragraph} begins with {said!r}, not {self.first_word!r}"


class IFEvalExistence(keywords.Existence):
    def count(self, word: str, text: str) -> int:
        return _literal_occurrences(word, text)


class IFEvalFrequency(keywords.Frequency):
    def count(self, word: str, text: str) -> int:
        return _literal_occurrences(word.strip(), text)


def _literal_occurrences(word: str, text: str) -> int:
    return len(re.findall(re.escape(word), text, re.IGNORECASE))


class IFEvalEndChecker(wording.EndChecker):
    def problem(self, text: str) -> str:
        said = text.strip().strip('"').lower()
        return "" if said.endswith(self.end_phrase.strip().lower()) else f"it does not end with {self.end_phrase!r}"


class IFEvalPostscript(keywords.Postscript):
    ps = r"p\.\s?s\."


class IFEvalRepeatPrompt(wording.RepeatPrompt):
    def problem(self, text: str) -> str:
        repeated = text.strip().lower().startswith(self.prompt_to_repeat.strip().lower())
        return "" if repeated else "it does not begin by repeating the request"


class IFEvalJsonFormat(formats.JsonFormat):
    def content(self, text: str) -> str:
        return formats.without_backticks(text)

    def constant(self, name: str) -> float:
        return float(name)


class IFEvalForbiddenWords(keywords.ForbiddenWords):
    def problem(self, text: str) -> str:
        found = [word for word in self.forbidden_words if re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE)]
        return f"it contains {', '.join(found)}" if found else ""


class IFEvalBullets(formats.Bullets):
    def problem(self, text: str) -> str:
        bullets = [line for line in text.split("\n") if re.match(r"\s*(?:\*[^*]|-)", line)]
        return counted("bullets", len(bullets), "exactly", self.num_bullets)


class IFEvalHighlights(formats.Highlights):
    def count(self, text: str) -> int:
        patterns = (r"\*([^\n*]*)\*", r"\*\*([^\n*]*)\*\*")
        return sum(1 for pattern in patterns for found in re.findall(pattern, text) if found.strip())


class IFEvalNoComma(wording.NoComma):
    def problem(self, text: str) -> str:
        return super().problem(text) if "," in text else ""


class IFEvalPlaceholders(keywords.Placeholders):
    def problem(self, text: str) -> str:
        found = 0
        for line in text.split("\n"):
            position = line.find("[")
            while position >= 0 and (end := line.find("]", position)) >= 0:
                found += 1
                position = line.find("[", end)
        return counted("placeholders", found, "at least", self.num_placeholders)


def _other_than(language: str, text: str) -> str:
    """Return the problem of a text in another language. A text without a detected language passes, as in IFEval."""
    found = _detector()(text)
    if not found or found.split("-")[0] == language:
        return ""
    return f"it is in language {found}, not {language}"


AS_IN_IFEVAL: dict[str, type[Constraint]] = {
    kind.id: kind
    for kind in (
        IFEvalWords,
        IFEvalSentences,
        IFEvalCapitalWords,
        IFEvalResponseLanguage,
        IFEvalEnglishCapital,
        IFEvalEnglishLowercase,
        IFEvalParagraphs,
        IFEvalNthParagraph,
        IFEvalPlaceholders,
        IFEvalExistence,
        IFEvalFrequency,
        IFEvalEndChecker,
        IFEvalPostscript,
        IFEvalRepeatPrompt,
        IFEvalJsonFormat,
        IFEvalForbiddenWords,
        IFEvalBullets,
        IFEvalHighlights,
        IFEvalNoComma,
    )
}
