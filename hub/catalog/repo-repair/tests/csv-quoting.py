#!/usr/bin/env -S python3 -I
import os
import sys

sys.path.insert(0, os.environ["TESTS"] + "/lib")
from probe import expect

expect(
    "write",
    "from export.cells import *\nshow(write_rows([['a', None, 1.5], ['x,y', 'p\\nq', 'r\\rs', '\"'], ['', ' b ']])); show(write_rows([]))",
    'a,,1.5\r\n"x,y","p\nq","r\rs",""""\r\n, b \r\n',
    "",
)
expect(
    "read",
    'from export.reading import *\nshow(read_rows(\'a,"b\\r\\nc","""d"""\\n,\\r\\n"e"\'))\nshow(read_rows(\'\'))\nshow(read_rows(\'x y\\u2028z,1\\n\'))\nshow(read_rows(\'""""\\r\\n\'))',
    [["a", "b\r\nc", '"d"'], ["", ""], ["e"]],
    [],
    [["x y\u2028z", "1"]],
    [['"']],
)
expect(
    "both",
    "from export.cells import *\nfrom export.reading import *\nrows = [['\"', ',', 'a\\nb'], ['\"\"', ' \"x\" ', '\\r\\n']]\nshow(read_rows(write_rows(rows)) == rows)",
    True,
)
