"""How far tests rely on the word of an object of the code, by how they came by it.

Tests of a class ask its objects: that is what they are for. But an object that stands in the place of a number, a text
or a set must not be told what the tests expect, or it would agree. So methods are called, and built-in operands passed,
only on objects of a class that the tests name. What an object says of its class is the code's word, so objects that the
tests did not make themselves may do less.
"""

CLASS = "class"  # a class that the tests name
MADE = "made"  # the result of calling such a class
DERIVED = "derived"  # what an operator made of a MADE or DERIVED object
METHOD = "method"  # a function that is an attribute of one of the above
NAMED = "named"  # anything else that the tests have by its name, such as a function or a module
GIVEN = "given"  # what the code returned
PART = "part"  # what it put inside an object of the prompt's class, whose methods would ask it

TRUSTED = frozenset({CLASS, MADE, DERIVED, METHOD})
COMPUTES = frozenset({MADE, DERIVED})

# Methods by which built-in and library values are asked about what is expected.
TELLING = frozenset(
    """
    startswith endswith count index rindex find rfind match fullmatch
    isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
    issubset issuperset isdisjoint union intersection difference symmetric_difference
    is_integer is_nan is_zero is_finite is_infinite is_signed compare compare_total equals all any allclose
    """.split()
)


def may_call(standing: str, is_of_named_class: bool, name: str) -> bool:
    """Whether tests may call the method of this name on an object."""
    if standing in (CLASS, MADE):
        return True
    if standing == PART or name in TELLING:
        return False
    return standing == NAMED or is_of_named_class
