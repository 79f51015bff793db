"""The option that an answer chooses (`answers.choice`), by label or text; each module uses those before it.

phrases, options, labels    words of choices; options found by their texts; labels, and texts that begin with one
exclusions, initials        labels that a text rules out; letters of names that look like labels
positions, several          labels by their position; texts that name several
comments, conclusions       ticks and comments on options; concluding sentences
stated, answers             the label of a statement such as "Answer: B"; the choice of a text
"""
