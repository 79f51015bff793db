"""Registry of constraints by id. To add one: a class in this folder and its name here."""

from hub.common.registry import Registry
from hub.scorers.constraints import formats, keywords, lengths, wording
from hub.scorers.constraints.base import Constraint

CONSTRAINTS: Registry[type[Constraint]] = Registry("instruction")
for kind in (
    keywords.Existence,
    keywords.Frequency,
    keywords.ForbiddenWords,
    keywords.LetterFrequency,
    keywords.KeywordOrder,
    wording.ResponseLanguage,
    lengths.Words,
    lengths.Sentences,
    lengths.Paragraphs,
    lengths.NthParagraph,
    lengths.Characters,
    lengths.Lines,
    lengths.SentenceLength,
    keywords.Placeholders,
    keywords.Postscript,
    formats.Bullets,
    formats.ConstrainedResponse,
    formats.Highlights,
    formats.Sections,
    formats.JsonFormat,
    formats.JsonKeys,
    formats.Title,
    formats.NumberedList,
    formats.Table,
    formats.CodeBlocks,
    wording.TwoResponses,
    wording.RepeatPrompt,
    wording.StartChecker,
    wording.EndChecker,
    wording.Quotation,
    wording.CapitalWords,
    wording.EnglishCapital,
    wording.EnglishLowercase,
    wording.NoComma,
    wording.ForbiddenMarks,
):
    CONSTRAINTS.register(kind.id, kind)
