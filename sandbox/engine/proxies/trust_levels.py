"""Trust levels: which operations of the code tests may rely on, by how they got the object.

Tests of a class have to call its methods. But an object in the place of a number, a text or a set must not receive the
expected value, or it could agree with anything. So methods are called, and built-in operands passed, only on objects of
a class that the tests name. The class that an object reports is not proof, since the code chooses it; so objects that
the tests did not create themselves may do less.
"""

CLASS = "class"  # a class that the tests name
MADE = "made"  # an object that the tests created by calling such a class
DERIVED = "derived"  # the result of an operator on a MADE or DERIVED object
METHOD = "method"  # a function that is an attribute of one of the above
NAMED = "named"  # anything else that the tests name, such as a function or a module
GIVEN = "given"  # an object that the code returned
PART = "part"  # an object of the code inside an instance of a class of the prompt, whose methods would call it

TRUSTED = frozenset({CLASS, MADE, DERIVED, METHOD})
COMPUTES = frozenset({MADE, DERIVED})

# Methods of built-in and library types that compare the object with an expected value.
REVEALING = frozenset(
    """
    startswith endswith count index rindex find rfind match fullmatch
    isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
    issubset issuperset isdisjoint union intersection difference symmetric_difference
    is_integer is_nan is_zero is_finite is_infinite is_signed compare compare_total equals all any allclose
    """.split()
)


def may_call(trust: str, is_of_named_class: bool, name: str) -> bool:
    """Return whether tests may call the method `name` of an object with this trust level."""
    if trust in (CLASS, MADE):
        return True
    if trust == PART or name in REVEALING:
        return False
    return trust == NAMED or is_of_named_class
