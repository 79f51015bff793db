"""Linked lists, trees, graphs and cycles, of classes of the prompt and of the code."""

from tests.sandbox.correct_solutions.kind import Kind

LIST_NODE = """
class ListNode:
    def __init__(self, val=0, next=None):
        self.val = val
        self.next = next
"""
TREE_NODE = """
from typing import Optional
class TreeNode:
    def __init__(self, val=0, left=None, right=None):
        self.val, self.left, self.right = val, left, right
"""
LIST_HELPERS = """
def build(values):
    head = None
    for v in reversed(list(values)):
        head = ListNode(v, head)
    return head
def listed(head):
    out = []
    while head:
        out.append(head.val)
        head = head.next
    return out
"""

STRUCTURES = [
    Kind(
        "linked-list-reversed",
        "def f(head):\n    prev = None\n    while head:\n        head.next, prev, head = prev, head, head.next\n    return prev\n",
        """
        assert listed(f(build([1, 2, 3]))) == [3, 2, 1]
        assert f(None) is None
        one = build([7])
        assert listed(f(one)) == [7]
        """,
        prompt=LIST_NODE + "def f(head):\n    '''Reverse a linked list.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-long",
        "def f(head):\n    n = 0\n    while head: head, n = head.next, n + 1\n    return n\n",
        "assert f(build(range(2000))) == 2000\nassert f(None) == 0\n",
        prompt=LIST_NODE + "def f(head):\n    '''Count the nodes.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-long-answer",
        "def f(n):\n    head = None\n    for i in range(n, 0, -1): head = ListNode(i, head)\n    return head\n",
        "assert listed(f(1500)) == list(range(1, 1501))\nassert f(0) is None\n",
        prompt=LIST_NODE + "def f(n):\n    '''A list of 1 to n.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-merged",
        """
        def f(a, b):
            head = tail = ListNode()
            while a and b:
                if a.val > b.val: a, b = b, a
                tail.next, tail, a = a, a, a.next
            tail.next = a or b
            return head.next
        """,
        """
        assert listed(f(build([1, 4]), build([2, 3, 9]))) == [1, 2, 3, 4, 9]
        assert listed(f(None, build([1]))) == [1]
        """,
        prompt=LIST_NODE + "def f(a, b):\n    '''Merge two sorted lists.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-cycle",
        """
        def f(head):
            slow = fast = head
            while fast and fast.next:
                slow, fast = slow.next, fast.next.next
                if slow is fast: return True
            return False
        """,
        """
        head = build([1, 2, 3, 4])
        assert f(head) == False
        head.next.next.next.next = head.next
        assert f(head) == True
        """,
        prompt=LIST_NODE + "def f(head):\n    '''Whether the list has a cycle.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-cycle-start",
        """
        def f(head):
            seen = set()
            while head:
                if id(head) in seen: return head
                seen.add(id(head))
                head = head.next
        """,
        """
        head = build([1, 2, 3])
        assert f(head) is None
        head.next.next.next = head.next
        assert f(head) is head.next
        assert f(head).val == 2
        """,
        prompt=LIST_NODE + "def f(head):\n    '''The first node of the cycle.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-intersection",
        """
        def f(a, b):
            seen = set()
            while a:
                seen.add(id(a))
                a = a.next
            while b and id(b) not in seen: b = b.next
            return b
        """,
        """
        tail = build([8, 9])
        a, b = ListNode(1, tail), ListNode(2, ListNode(3, tail))
        assert f(a, b) is tail
        assert f(build([1]), build([1])) is None
        """,
        prompt=LIST_NODE + "def f(a, b):\n    '''The node at which two lists meet.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-in-place",
        """
        def f(head):
            while head and head.next:
                if head.val == head.next.val: head.next = head.next.next
                else: head = head.next
        """,
        """
        head = build([1, 1, 2, 3, 3])
        assert f(head) is None
        assert listed(head) == [1, 2, 3]
        """,
        prompt=LIST_NODE + "def f(head):\n    '''Drop repeated values in place.'''\n",
        setup=LIST_HELPERS,
    ),
    Kind(
        "linked-list-of-the-code",
        """
        class Node:
            def __init__(self, value): self.value, self.next = value, None
        class LinkedList:
            def __init__(self): self.head, self.size = None, 0
            def append(self, v):
                node, self.size = Node(v), self.size + 1
                if not self.head: self.head = node
                else:
                    last = self.head
                    while last.next: last = last.next
                    last.next = node
            def __iter__(self):
                at = self.head
                while at:
                    yield at.value
                    at = at.next
            def __len__(self): return self.size
        """,
        """
        l = LinkedList()
        for i in range(50): l.append(i)
        assert list(l) == list(range(50))
        assert len(l) == 50
        assert l.head.next.next.value == 2
        """,
        entry="LinkedList",
    ),
    Kind(
        "linked-list-class-with-prompt-node",
        """
        class Queue:
            def __init__(self): self.head = self.tail = None
            def put(self, v):
                node = ListNode(v)
                if self.tail: self.tail.next = node
                else: self.head = node
                self.tail = node
            def get(self):
                node, self.head = self.head, self.head.next
                if not self.head: self.tail = None
                return node.val
        """,
        """
        q = Queue()
        q.put(1)
        q.put(2)
        assert q.head.val == 1 and q.head.next.val == 2
        assert q.get() == 1
        assert q.get() == 2
        assert q.head is None
        """,
        entry="Queue",
        prompt=LIST_NODE + "class Queue:\n    '''A queue of linked nodes.'''\n",
    ),
    Kind(
        "tree-depth",
        "def f(root): return 0 if root is None else 1 + max(f(root.left), f(root.right))\n",
        """
        assert f(None) == 0
        assert f(TreeNode(1, TreeNode(2), TreeNode(3, TreeNode(4)))) == 3
        """,
        prompt=TREE_NODE + "def f(root):\n    '''The depth of a tree.'''\n",
    ),
    Kind(
        "tree-inverted",
        "def f(root):\n    if root: root.left, root.right = f(root.right), f(root.left)\n    return root\n",
        """
        root = TreeNode(1, TreeNode(2), TreeNode(3))
        assert f(root) is root
        assert root.left.val == 3 and root.right.val == 2
        """,
        prompt=TREE_NODE + "def f(root: Optional[TreeNode]) -> Optional[TreeNode]:\n    '''Mirror a tree.'''\n",
    ),
    Kind(
        "tree-ancestor",
        """
        def f(root, p, q):
            if root is None or root is p or root is q: return root
            left, right = f(root.left, p, q), f(root.right, p, q)
            return root if left and right else left or right
        """,
        """
        p, q = TreeNode(4), TreeNode(5)
        left = TreeNode(2, p, q)
        root = TreeNode(1, left, TreeNode(3))
        assert f(root, p, q) is left
        assert f(root, p, root.right) is root
        """,
        prompt=TREE_NODE + "def f(root, p, q):\n    '''The lowest common ancestor.'''\n",
    ),
    Kind(
        "tree-built",
        """
        def f(xs):
            if not xs: return None
            mid = len(xs) // 2
            return TreeNode(xs[mid], f(xs[:mid]), f(xs[mid + 1:]))
        """,
        """
        def inorder(n): return inorder(n.left) + [n.val] + inorder(n.right) if n else []
        root = f([1, 2, 3, 4, 5])
        assert inorder(root) == [1, 2, 3, 4, 5]
        assert root.val == 3
        assert isinstance(root, TreeNode)
        """,
        prompt=TREE_NODE + "def f(xs):\n    '''A balanced tree.'''\n",
    ),
    Kind(
        "graph-copied",
        """
        def f(node):
            copies = {}
            def copy(n):
                if n not in copies:
                    copies[n] = Node(n.val)
                    copies[n].neighbors = [copy(m) for m in n.neighbors]
                return copies[n]
            return node and copy(node)
        """,
        """
        a, b = Node(1), Node(2)
        a.neighbors, b.neighbors = [b], [a]
        c = f(a)
        assert c is not a
        assert c.val == 1 and c.neighbors[0].val == 2
        assert c.neighbors[0].neighbors[0] is c
        assert f(None) is None
        """,
        prompt="class Node:\n    def __init__(self, val):\n        self.val, self.neighbors = val, []\n"
        "def f(node):\n    '''Copy a graph.'''\n",
    ),
    Kind(
        "random-pointer",
        """
        def f(head):
            old = {None: None}
            at = head
            while at:
                old[at] = Link(at.val)
                at = at.next
            for a, b in old.items():
                if a: b.next, b.random = old[a.next], old[a.random]
            return old[head]
        """,
        """
        a, b = Link(1), Link(2)
        a.next, a.random, b.random = b, b, a
        c = f(a)
        assert (c.val, c.next.val, c.random.val) == (1, 2, 2)
        assert c.next.random is c
        assert c.next is not b
        """,
        prompt="class Link:\n    def __init__(self, val, next=None, random=None):\n"
        "        self.val, self.next, self.random = val, next, random\ndef f(head):\n    '''Copy.'''\n",
    ),
    Kind(
        "dataclass-of-the-prompt",
        "def f(people): return sorted(people, key=lambda p: (-p.age, p.name))\n",
        """
        got = f([Person("a", 1), Person("b", 9), Person("c", 9)])
        assert got == [Person("b", 9), Person("c", 9), Person("a", 1)]
        assert [p.name for p in got] == ["b", "c", "a"]
        """,
        prompt="from dataclasses import dataclass\n@dataclass\nclass Person:\n    name: str\n    age: int\n"
        "def f(people):\n    '''Oldest first.'''\n",
    ),
    Kind(
        "enum-of-the-prompt",
        "def f(light): return {Light.RED: Light.GREEN, Light.GREEN: Light.RED}[light]\n",
        "assert f(Light.RED) is Light.GREEN\nassert f(Light.GREEN) == Light.RED\n",
        prompt="from enum import Enum\nclass Light(Enum):\n    RED = 1\n    GREEN = 2\ndef f(light):\n    '''Next.'''\n",
    ),
    Kind(
        "prompt-class-without-hint",
        "def f(xs):\n    total = Money(0)\n    for x in xs: total = total + x\n    return total\n",
        "assert f([Money(1), Money(2)]) == Money(3)\nassert f([]).amount == 0\n",
        prompt="""
class Money:
    def __init__(self, amount): self.amount = amount
    def __add__(self, other): return Money(self.amount + other.amount)
    def __eq__(self, other): return self.amount == other.amount
def f(xs):
    '''The sum.'''
""",
    ),
    Kind(
        "self-containing-list",
        "def f():\n    xs = [1]\n    xs.append(xs)\n    return xs\n",
        """
        xs = f()
        assert xs[0] == 1
        assert xs[1] is xs
        assert len(xs) == 2
        """,
    ),
    Kind(
        "self-containing-argument",
        """
        def f(x, seen=()):
            if not isinstance(x, (list, dict)): return 1
            if any(s is x for s in seen): return 0
            items = x.values() if isinstance(x, dict) else x
            return sum(f(y, (*seen, x)) for y in items)
        """,
        """
        xs = [1, 2]
        xs.append(xs)
        assert f(xs) == 2
        d = {"a": 1}
        d["self"] = d
        assert f(d) == 1
        """,
    ),
    Kind(
        "shared-rows",
        "def f(rows):\n    rows[0][0] = 5\n    return rows\n",
        """
        rows = [[0] * 2] * 2
        assert f(rows) == [[5, 0], [5, 0]]
        assert rows[1][0] == 5
        separate = [[0], [0]]
        assert f(separate) == [[5], [0]]
        """,
    ),
    Kind(
        "same-argument-twice",
        "def f(a, b):\n    a.append(1)\n    return a is b, len(b)\n",
        """
        xs = []
        assert f(xs, xs) == (True, 1)
        assert f([], []) == (False, 0)
        """,
    ),
    Kind(
        "mutated-in-place",
        "def f(board):\n    for row in board: row.reverse()\n    board.append(['end'])\n",
        """
        board = [[1, 2], [3, 4]]
        first = board[0]
        assert f(board) is None
        assert board == [[2, 1], [4, 3], ["end"]]
        assert first == [2, 1]
        """,
    ),
    Kind(
        "mutated-keyword",
        "def f(*, into, items):\n    into.update(items)\n    return into\n",
        """
        d = {}
        got = f(into=d, items={"a": 1})
        assert d == {"a": 1}
        assert got is d
        """,
    ),
    Kind(
        "returns-inner-argument",
        "def f(d, k): return d.setdefault(k, [])\n",
        """
        d = {"a": [1]}
        inner = f(d, "a")
        inner.append(2)
        assert d["a"] == [1, 2]
        assert f(d, "b") == []
        assert "b" in d
        """,
    ),
]
