"""Numbers in texts, from characters to answers; each module uses those before it.

number_words, scales        number words as digits; words such as million
plain_text, quantities      TeX and typography as plain characters; written numbers
measures, bounds            units; numbers that only limit the answer
values, links               a value, or why there is none; numbers beside each other
omissions, clauses          parts whose numbers are no answers; the value of a clause, a sentence or a statement
prose, answers              the number of a text without a marked answer; the number of any answer (`read_number`)
"""
