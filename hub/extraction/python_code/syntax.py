"""Static analysis of Python source: whether it compiles, which names it defines, which are undefined."""

import ast
import builtins
import re
import symtable
import textwrap
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from hub.extraction.fences import split_lines
from sandbox.engine.test_judge.prompt import is_stub
from sandbox.verdicts.parsing import parse_checked

_BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__"}
_BEGINS_DEFINITION = re.compile(r"(?:async\s+)?def\s+\w+\s*[(\[]|class\s+\w+\s*[(:\[]|@\w[\w.]*\s*(?:\(|$)")
_CONTINUATION = re.compile(r"(?:else|elif|except|finally|case)\b|[)\]}]")
# An indented comment for code that is left out: `# ...`, `# ... (rest as before)`, `# rest of the function`.
_ELISION = re.compile(
    r"[ \t]+#\s*(?:(?:\.{3}|…)\s*"
    r"(?:$|\(?(?:the\s)?(?:rest|remaining|existing|same|as before|previous|unchanged|original)\b.*)"
    r"|\(?(?:the\s)?(?:rest|remainder) of (?:the|your)\s\w+(?:\s(?:is|remains|stays)\b.*|\s*\)?)$)",
    re.IGNORECASE,
)
_UNFINISHED = ("was never closed", "unterminated triple-quoted", "unexpected EOF")
_MAX_JOINED = 60  # lines that may be joined because of an open bracket or string
_MAX_TRIES = 2000  # lines joined in one text; after that, open brackets are ignored
_CACHE_SIZE = 64  # sources; the same source is parsed repeatedly while an answer is read
_MAX_CACHED_LENGTH = 20_000  # characters; a tree takes some fifty times as much memory


def parsed(source: str) -> ast.Module | None:
    """Return the syntax tree, which must not be changed; None if *source* does not compile."""
    return _compile(source)[0]


def compiles(source: str) -> bool:
    return bool(source.strip()) and parsed(source) is not None


def _compile(source: str) -> tuple[ast.Module | None, str]:
    """Return the syntax tree, or None and the problem."""
    return _compile_cached(source) if len(source) <= _MAX_CACHED_LENGTH else _compile_uncached(source)


def _compile_uncached(source: str) -> tuple[ast.Module | None, str]:
    try:
        return parse_checked(source), ""
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return None, str(error)


_compile_cached = lru_cache(_CACHE_SIZE)(_compile_uncached)


def defines(source: str, name: str) -> bool:
    """Return whether the top level of *source* binds *name*; a pattern decides if it does not compile."""
    tree = parsed(source)
    if tree is None:
        return re.search(rf"^(?:async\s+)?(?:def|class)\s+{re.escape(name)}\b", source, re.MULTILINE) is not None
    return name in bound(tree)


def defined_names(source: str) -> set[str]:
    """Return the names that the top level of *source* binds."""
    tree = parsed(source)
    return bound(tree) if tree else set()


def bound(tree: ast.Module) -> set[str]:
    """Return the names that the top level of *tree* binds."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
        else:
            names |= {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return names


def implemented_names(tree: ast.Module, *, returning: bool = False) -> set[str]:
    """Return the names that *tree* implements: functions and classes that are not stubs, and assigned names.

    *returning*: only functions that return or yield something, for code that may have been cut off between two lines.
    """
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            if not _is_stub(node) and (_returns(node) or not returning):
                names.add(node.name)
        elif isinstance(node, ast.ClassDef):
            if not _is_stub(node):
                names.add(node.name)
        elif not isinstance(node, ast.Import | ast.ImportFrom):
            names |= bound(ast.Module([node], []))
            names |= implemented_names(
                ast.Module([s for s in ast.iter_child_nodes(node) if isinstance(s, ast.stmt)], [])
            )
    return names


def implemented_names_in(source: str) -> set[str]:
    """Return the names that *source* implements; none if it does not compile."""
    tree = parsed(source)
    return implemented_names(tree) if tree else set()


def assigned_values(tree: ast.Module) -> set[str]:
    """Return the names that *tree* binds only to what is hardly a function: `total = 0`, `total = total([1, 2])`."""
    values, others = set[str](), set[str]()
    pending: list[ast.AST] = [*tree.body]
    while pending:
        node = pending.pop()
        is_definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        is_function = isinstance(node, ast.Assign | ast.AnnAssign) and _may_be_function(node.value)
        if isinstance(node, ast.stmt):
            is_other = is_definition or is_function or isinstance(node, ast.Import | ast.ImportFrom)
            (others if is_other else values).update(bound(ast.Module([node], [])))
        if not is_definition:
            parts = ast.iter_child_nodes(node)
            pending += [part for part in parts if isinstance(part, ast.stmt | ast.ExceptHandler | ast.match_case)]
    return values - others


def _may_be_function(value: ast.expr | None) -> bool:
    if isinstance(value, ast.Call):
        return ast.unparse(value.func) in ("partial", "functools.partial")
    return isinstance(value, ast.Lambda | ast.Name | ast.Attribute)


def definitions(source: str) -> dict[str, ast.stmt]:
    """Return the functions and classes at the top level of *source* by name."""
    tree = parsed(source)
    found = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return {node.name: node for node in tree.body if isinstance(node, found)} if tree else {}


def corrects(source: str, defined: Mapping[str, ast.stmt]) -> bool:
    """Return whether *source* only defines functions and classes, and replaces one of *defined* by another version.

    Each version must be complete: not a stub, with no code left out, with as many parameters as the function that it
    replaces or all names of the class.
    """
    tree = parsed(source)
    if tree is None or not all(
        isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
        for node in tree.body
    ):
        return False
    complete = implemented_names(tree) - elided_names(source, tree)
    pairs = [(defined[name], node) for name, node in definitions(source).items() if name in defined]
    return (
        bound(tree) & defined.keys() <= complete
        and all(_has_same_form(old, new) for old, new in pairs)
        and any(ast.dump(old) != ast.dump(new) for old, new in pairs)
    )


def _has_same_form(old: ast.stmt, new: ast.stmt) -> bool:
    if isinstance(old, ast.ClassDef) and isinstance(new, ast.ClassDef):
        return bound(ast.Module(old.body, [])) <= bound(ast.Module(new.body, []))
    if isinstance(old, ast.FunctionDef | ast.AsyncFunctionDef) and type(old) is type(new):
        assert isinstance(new, ast.FunctionDef | ast.AsyncFunctionDef)
        return len(old.args.posonlyargs + old.args.args) == len(new.args.posonlyargs + new.args.args)
    return False


def elided_names(source: str, tree: ast.Module) -> set[str]:
    """Return the names of functions and classes in *tree* with a comment for code left out: `# ... rest as before`."""
    lines = split_lines(source)
    starts = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    elided = [number for number, line in enumerate(lines, 1) if _ELISION.match(line)] if starts else []
    names = set()
    for number in elided:
        before = bisect_right(starts, number, key=lambda node: node.lineno)
        if before:
            names.add(starts[before - 1].name)
    return names


def _is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a definition is empty, or contains the statement `...`."""
    if not isinstance(node, ast.ClassDef) and any(_is_ellipsis(statement) for statement in node.body):
        return True
    return is_stub(node)


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _returns(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Return | ast.Yield | ast.YieldFrom | ast.Raise) for part in ast.walk(node))


def lacks_function_body(source: str) -> bool:
    """Return whether *source* does not compile because a definition contains only comments."""
    return "expected an indented block" in _compile(source)[1]


@lru_cache(_CACHE_SIZE)
def undefined_names(source: str) -> frozenset[str]:
    """Return the names that *source* reads and that neither it nor the builtins define."""
    tree = parsed(source)
    if tree is None:
        return frozenset()
    read = {symbol.get_name() for table in _tables(source) for symbol in _read_globals(table)}
    return frozenset(read - bound(tree) - _BUILTINS)


def _tables(source: str) -> Iterator[symtable.SymbolTable]:
    pending = [symtable.symtable(source, "<answer>", "exec")]
    while pending:
        table = pending.pop()
        yield table
        pending += table.get_children()


def _read_globals(table: symtable.SymbolTable) -> Iterator[symtable.Symbol]:
    at_top = table.get_type() == "module"
    for symbol in table.get_symbols():
        if symbol.is_referenced() and (symbol.is_global() or (at_top and not symbol.is_assigned())):
            yield symbol


def does_something(source: str) -> bool:
    """Return whether *source* compiles and is not prose that happens to be Python, such as `Note: this` or `yes`."""
    tree = parsed(source)
    return tree is not None and any(not _is_idle(node) for node in tree.body)


def only_shows_data(source: str) -> bool:
    """Return whether *source* compiles and consists of values, such as an input or an output: `6`, `n = 5`, `# 6`."""
    tree = parsed(source)
    return tree is not None and all(_is_idle(node) or _is_constant(node) for node in tree.body)


def _is_constant(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign):
        return False
    try:
        ast.literal_eval(node.value)
    except (ValueError, TypeError, MemoryError, RecursionError):
        return False
    return True


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):
        return node.value is None
    return isinstance(node, ast.Expr) and not isinstance(node.value, ast.Call | ast.Await)


# ---- code within prose -----------------------------------------------------------------------------------------------


def code_regions(text: str) -> list[str]:
    """Return the parts of *text* that are Python, without the prose between them.

    Text is split at lines that are not indented. A piece is code if it compiles and does something, or if it begins
    like a function or class; the sandbox reports the mistakes in it.
    """
    found: list[list[str]] = []
    in_code = False
    for piece in _pieces(text):
        if does_something(piece) or _BEGINS_DEFINITION.match(piece):
            if not in_code:
                found.append([])
            found[-1].append(piece)
            in_code = True
        elif piece.strip() and not (in_code and piece.startswith("#")):
            in_code = False
    return ["".join(pieces).rstrip() + "\n" for pieces in found]


def indented_code_regions(text: str) -> list[str]:
    """Return the indented parts of *text*, as in Markdown, that are Python without the indentation."""
    found = []
    for piece in _pieces(text):
        if does_something(piece) or _BEGINS_DEFINITION.match(piece):
            continue
        lines = [line + "\n" for line in split_lines(piece)]
        start = next((i for i, line in enumerate(lines) if line[0] in " \t" and line.strip()), len(lines))
        source = textwrap.dedent("".join(lines[start:]))
        if does_something(source) or _BEGINS_DEFINITION.match(source):
            found.append(source.rstrip() + "\n")
    return found


def without_last_statement(text: str) -> str:
    """Return *text* up to its last line that is not indented and may begin a statement."""
    return "".join(list(_pieces(text))[:-1])


def _pieces(text: str) -> Iterator[str]:
    """Yield *text* split before each line that is not indented and may begin a statement."""
    lines = [line + "\n" for line in split_lines(text)]
    position = tries = 0
    while position < len(lines):
        end = _next_flush(lines, position + 1)
        while end < len(lines) and tries < _MAX_TRIES and _continues(lines[position:end], lines[end]):
            end = _next_flush(lines, end + 1)
            tries += 1
        yield "".join(lines[position:end])
        position = end


def _next_flush(lines: Sequence[str], start: int) -> int:
    end = start
    while end < len(lines) and (not lines[end].strip() or lines[end][0] in " \t"):
        end += 1
    return end


def _continues(lines: Sequence[str], following: str) -> bool:
    """Return whether the line after *lines* cannot begin a statement: after a decorator, in brackets, an `else`."""
    if len(lines) > _MAX_JOINED:
        return False
    piece = "".join(lines)
    if _CONTINUATION.match(following) or piece.rstrip().rpartition("\n")[2].startswith("@"):
        return True
    if not _looks_unfinished(piece):
        return False
    tree, problem = _compile(piece)
    return tree is None and any(words in problem for words in _UNFINISHED)


def _looks_unfinished(piece: str) -> bool:
    """Return a fast guess that avoids compiling each piece: odd number of triple quotes, or an open bracket."""
    if piece.count('"""') % 2 or piece.count("'''") % 2:
        return True
    return any(piece.count(opening) > piece.count(closing) for opening, closing in ("()", "[]", "{}"))
