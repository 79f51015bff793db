"""Connection of a test judge to its candidate: numbered requests, each with one reply."""

from _thread import allocate_lock, get_ident  # `threading` is not loaded in the zygote, and few tests need it
from collections.abc import Callable
from typing import NamedTuple

from ..protocol import codec, frames, replies
from ..protocol.channel import Channel, Closed
from ..protocol.graph import Flattener, are_small, keeps_arguments
from ..protocol.operations import BINARY, ENDING, RESUMES
from . import passed_objects, trust_levels
from .consistency import CHANGES, ReplyHistory
from .conversion import ValueConverter
from .copies import Copies
from .errors import CandidateGone, Missing, Tampered, TooLarge
from .proxy import Proxy, ProxyState, state_of
from .special_methods import make_proxy

_UNREADABLE = (codec.CodecError, KeyError, IndexError, TypeError, AttributeError, ValueError)


_CONTINUES = frozenset({"enter", "aenter", *ENDING})  # operations after which the code may continue


class _Kept(NamedTuple):
    """Arguments of an earlier call whose code continues: the objects, and their encodings as the code has them."""

    objects: list[object]
    nodes: list[object]


class Peer:
    """Sends numbered requests to the candidate, one after the other."""

    def __init__(
        self,
        channel: Channel,
        namespace: dict[str, object],
        shared: list[str],
        classes: frozenset[str] = frozenset(),
        functions: frozenset[str] = frozenset(),
    ) -> None:
        """
        namespace           the names of the tests and of the prompt
        shared              classes of the prompt, which both processes define
        classes, functions  names that the prompt gives to classes and functions
        """
        self._channel = channel
        self._classes, self._functions = classes, functions
        self._number = 0
        self._lock = allocate_lock()
        self._asking_thread = 0  # the thread that holds the lock
        self._history = ReplyHistory()
        self._ending: BaseException | None = None  # from a function of the tests that the code called: ends the test
        self.values = ValueConverter(self, namespace, shared)
        self._copies = Copies(self.values.encode)
        self.named_classes: dict[str, Proxy] = {}  # classes of the code that the tests name
        self.plain_values: dict[int, object] = {}  # handle -> value of the built-in type that the object extends
        self.raise_lines: frozenset[int] = frozenset()  # lines at which the tests raise exceptions themselves
        self.on_lost: Callable[[BaseException], None] = lambda signal: None  # called before CandidateGone is raised
        self.too_large: TooLarge | None = None  # the last result that was too large
        self._kept: dict[int, _Kept] = {}  # by the handle of an object that may change them
        self.unsupported = ""  # the first operation whose result differs from that in the code's process
        self.undecidable = ""  # why tests cannot be decided here even if they pass
        self.answered = 0  # requests answered so far
        self.found = 0  # of these, those that only gave a proxy for a name

    # ---- for tests --------------------------------------------------------------------------------------------------

    def find(self, name: str) -> object:
        """Return what the code defines as "name" or "module:name". Raises Missing."""
        value = self.ask("get", name=name)
        if isinstance(value, Proxy):
            self.found += 1
            return self.named(name, value)
        if not isinstance(value, type):
            self._copies.add_variable(name, value)
        return value

    def named(self, name: str, value: Proxy) -> Proxy:
        """Return a proxy for something that the tests name.

        If the code returns the same object, the tests get another proxy, because they do not name the returned object.
        """
        state = state_of(value)
        is_class = self._is_class(name, state)
        known = self.named_classes.get(state.class_name) if is_class else None
        if known is not None and state_of(known).handle == state.handle:
            return known
        trust = trust_levels.CLASS if is_class else trust_levels.NAMED
        state = ProxyState(self, state.handle, state.kind, state.names, state.specials, state.base, trust)
        found = make_proxy(state)
        if is_class:
            self.named_classes[state.class_name] = found
        return found

    def _is_class(self, name: str, state: ProxyState) -> bool:
        """Return whether the tests treat it as a class. Its kind alone is not proof, because the code chooses it."""
        last = name.rpartition(":")[2].rpartition(".")[2]
        if state.kind != "class" or last in self._functions:
            return False
        return last in self._classes or last.lstrip("_")[:1].isupper()

    @property
    def influenced(self) -> bool:
        """Whether anything that the code decides has reached this process."""
        return self.answered > self.found

    def note(self, reason: str) -> None:
        """Record the first operation of the tests that needs the process of the code."""
        self.unsupported = self.unsupported or reason

    def compare_variables(self) -> None:
        """Record that tests cannot be decided here if the code has changed a variable that they have used."""
        for name in self._copies.variables:
            value = self.ask("get", name=name)
            if isinstance(value, Proxy) or not self._copies.is_variable_equal(name, value):
                self.forbid(f"the code has changed its variable {name}, of which the tests have a copy")

    def forbid(self, reason: str) -> None:
        """Record what makes even a pass of the tests meaningless."""
        self.undecidable = reason
        self.note(reason)

    # ---- questions --------------------------------------------------------------------------------------------------

    def call(
        self,
        handle: int,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        *,
        trusted: bool = False,
        grants: str = trust_levels.GIVEN,
    ) -> object:
        """Call an object of the code. Containers are sent as numbered nodes, so that each keeps its identity."""
        flat = Flattener(self.values.export, self.values.shared)
        positional = [flat.child(arg) for arg in args]
        named = {name: flat.child(arg) for name, arg in kwargs.items()}
        nodes = flat.nodes()
        return self.ask(
            "call",
            tuple(flat.objects),
            trusted=trusted,
            grants=grants,
            on=handle,
            args=positional,
            kwargs=named,
            nodes=nodes,
        )

    def apply(
        self, handle: int, name: str, args: tuple[object, ...], *, trusted: bool, grants: str, watched: bool
    ) -> object:
        """Apply an operation to an object of the code.

        If it continues the code of a call, such as that of a generator, both processes see what the other one has
        changed in the arguments of the call.
        """
        request: dict[str, object] = {"name": name, "on": handle}
        kept = self._kept.get(handle) if name in RESUMES else None
        if name in ("enter", "aenter", "send"):
            kept = kept or _Kept([], [])  # what the block or the generator is given changes, too
        if kept is None:
            request["args"] = [self.values.encode(arg) for arg in args]
            return self.ask("apply", (), trusted=trusted, grants=grants, watched=watched, **request)
        flat = Flattener(self.values.export, self.values.shared, kept.objects)
        request["args"] = [flat.child(arg) for arg in args]
        nodes = flat.nodes()
        before = kept.nodes
        request["written"] = [i for i in range(len(before)) if codec.dumps(nodes[i]) != codec.dumps(before[i])]
        request |= {"known": len(before), "nodes": nodes}
        return self.ask("apply", tuple(flat.objects), trusted=trusted, grants=grants, watched=watched, **request)

    def ask(
        self,
        operation: str,
        changing: tuple[object, ...] = (),
        *,
        trusted: bool = False,
        grants: str = trust_levels.GIVEN,
        watched: bool = True,
        **request: object,
    ) -> object:
        """Return the decoded reply; arguments in `changing` that the call changed are changed here too.

        trusted  whether the request goes to an object of a class that the tests name
        watched  whether the same question must get the same reply, see `consistency`
        grants   the trust level of an object that comes back for the first time

        Raises Tampered for every reply that the table in `replies` does not allow. Tests may catch every exception, so
        `on_lost` and `too_large` make sure that the loss of a candidate is not taken for a reply.
        """
        thread = get_ident()
        is_nested = self._asking_thread == thread  # in a function that the code called back
        if not is_nested:
            self._lock.acquire()  # one request at a time, from any thread of the tests
            self._asking_thread = thread
        try:
            return self._ask(operation, changing, trusted, grants, watched, request)
        except (CandidateGone, Tampered, Missing) as signal:
            self.on_lost(signal)
            raise
        except TooLarge as signal:
            self.too_large = signal
            raise
        finally:
            if not is_nested:
                self._asking_thread = 0
                self._lock.release()

    def _ask(
        self,
        operation: str,
        changing: tuple[object, ...],
        trusted: bool,
        grants: str,
        watched: bool,
        request: dict[str, object],
    ) -> object:
        if self._channel.has_input():
            self._receive()
            raise Tampered("an answer came before its question")
        if changed := self._copies.changed_by_tests():
            self.forbid(f"the tests change {changed} of the code, of which they have a copy, and use the code again")
        self._number += 1
        number = self._number
        self._send({"op": operation, "n": number, **request})
        asked = str(request["name"]) if operation == "apply" else operation
        nodes = request.get("nodes")
        sent: list[object] = nodes if isinstance(nodes, list) else []
        while True:
            payload = self._receive()
            try:
                reply = codec.of_type(dict, codec.loads(payload))
                kind = replies.check(reply, asked, number, sent, len(self.values.passed))
                if kind != "callback":
                    self.values.is_reply_trusted = trusted
                    value, error, objects = self._read(reply, kind, changing, grants)
            except _UNREADABLE as problem:
                why = str(problem) if isinstance(problem, codec.CodecError) else type(problem).__name__
                raise Tampered(f"an answer that cannot be read ({why})") from None
            if kind == "callback":
                self._call_back(reply)
                continue
            self.answered += 1
            if isinstance(nodes, list):
                self._keep(request, reply, kind, objects)
            self._compare(operation, request, kind, reply[kind], watched)
            if asked == "getattr" and kind == "value":
                name = str(codec.of_type(list, request["args"])[0])
                self._copies.add_attribute(codec.of_type(int, request["on"]), name, value)
            if self._ending is not None:  # even if the code caught it
                ending, self._ending = self._ending, None
                raise ending
            if error is not None:
                raise error
            return value

    def _read(
        self, reply: dict[str, object], kind: str, changing: tuple[object, ...], grants: str
    ) -> tuple[object, BaseException | None, list[object]]:
        """Return the value of a checked reply or the exception that it describes, and all containers by number."""
        values = self.values
        content = reply[kind]
        builder = values.builder(changing)
        if kind == "value" and isinstance(content, dict) and "z" in content:
            nodes, content = content["z"]
            builder.add(nodes)
        for index, node in codec.of_type(dict, reply.get("changed", {})).items():
            builder.fill(int(index), node)
        if kind == "value":
            is_new = replies.is_handle(content) and not values.has_proxy(content["h"][0])
            value = builder.child(content)
            if is_new and grants != trust_levels.GIVEN and isinstance(value, Proxy):
                state_of(value).trust = grants
            return value, None, builder.objects
        if replies.is_raised(content) and kind == "error":
            return None, values.exception(content), builder.objects
        if kind == "stop":
            if isinstance(content, dict):
                return None, StopIteration(values.decode(content["value"])), builder.objects
            return None, StopIteration(), builder.objects
        if kind == "same":
            value = changing[codec.of_type(int, content)]
            if isinstance(value, Proxy):
                values.note_returned(value)
            return value, None, builder.objects
        return None, TooLarge(content) if kind == "large" else Missing(content), builder.objects

    def _keep(self, request: dict[str, object], reply: dict[str, object], kind: str, objects: list[object]) -> None:
        """Keep the arguments of a call, if operations on the object that it returned may change them.

        objects  the containers of the request and of the reply, by number
        """
        handle, content, sent = codec.of_type(int, request["on"]), reply[kind], codec.of_type(list, request["nodes"])
        if "known" in request:
            self._kept.pop(handle, None)
            if kind not in ("value", "same") or request["name"] not in _CONTINUES:
                return  # its code has ended
        else:
            if isinstance(content, dict) and "z" in content:
                content = content["z"][1]
            found = content["h"] if kind == "value" and replies.is_handle(content) else None
            if not replies.is_handle_content(found):
                return
            handle, _, _, specials, _ = found
            if not keeps_arguments(specials, sent):
                return
        nodes = sent
        if "changed" in reply or len(objects) > len(sent):
            nodes = Flattener(self.values.export, self.values.shared, objects).nodes()[: len(objects)]
        if request.get("name") not in ENDING or are_small(nodes):
            self._kept[handle] = _Kept(objects, nodes)

    def _compare(self, operation: str, request: dict[str, object], kind: str, content: object, watched: bool) -> None:
        """Compare a reply with earlier replies to the same question. A difference is described in `undecidable`."""
        if operation == "call":
            self._history.forget()
            return
        name = str(request["name"])
        on, args = request.get("on", -1), request.get("args", [])
        if operation == "get":
            on, args, name = -1, [name], "get"
        if not watched:
            if name == "next" or name in CHANGES or name in BINARY:
                self._history.forget()
            return
        assert isinstance(on, int) and isinstance(args, list)
        if not self._history.is_consistent(on, name, args, kind, content):
            asked = f"getattr {args[0]}" if name == "getattr" else name
            self.forbid(
                f"an object of the code replies differently to the same question ({asked}), and the tests did not call "
                "the code in between"
            )

    # ---- messages ---------------------------------------------------------------------------------------------------

    def _send(self, message: dict[str, object]) -> None:
        payload = codec.dumps(message)
        if codec.OPAQUE in payload:
            self.note("the code was given an object that cannot cross to its process")
        try:
            self._channel.send(frames.PEER, payload)
        except OSError:
            raise CandidateGone from None

    def _receive(self) -> bytes:
        try:
            kind, payload = self._channel.receive()
        except (Closed, OSError):
            raise CandidateGone from None
        except frames.FrameTooLarge as error:
            raise Tampered(str(error)) from None
        if kind == frames.PEER_GONE:
            raise CandidateGone
        if kind != frames.PEER:
            raise Tampered("a frame of a kind that it may not send")
        if codec.OPAQUE in payload:
            self.note("the code returned an object that cannot cross to the tests' process")
        return payload

    # ---- calls of the tests' objects by the code --------------------------------------------------------------------

    def _call_back(self, request: dict[str, object]) -> None:
        """Use an object of the tests for the code, and send the result."""
        values = self.values
        values.is_reply_trusted = False
        try:
            target = values.passed[codec.of_type(int, request["callback"])]
            args = [values.decode(arg) for arg in codec.of_type(list, request["args"])]
            kwargs = {str(name): values.decode(arg) for name, arg in codec.of_type(dict, request["kwargs"]).items()}
        except _UNREADABLE as problem:
            raise Tampered(f"a call of what it was not given ({type(problem).__name__})") from None
        self.answered += 1
        name = str(request.get("name", "call"))
        reply: dict[str, object]
        try:
            if name == "call":
                if not callable(target):
                    raise TypeError(f"'{type(target).__name__}' object is not callable")
                result = target(*args, **kwargs)
            else:
                result = passed_objects.apply_operation(target, name, args)
            reply = {"returned": values.encode(result)}
        except passed_objects.Refused as error:
            self.note(f"the code asks an object of the tests for {error}")
            reply = {"raised": {"g": "AttributeError"}, "args": {"t": [str(error)]}, "origin": None}
        except StopIteration as stop:
            reply = {"stopped": values.encode(stop.value)}
        except (CandidateGone, Tampered, Missing):
            raise
        except BaseException as error:
            reply = self._raised(error)
        self._send(reply)

    def _raised(self, error: BaseException) -> dict[str, object]:
        """Return the reply for an exception of the tests, without the text of a failed assert, which shows values."""
        if isinstance(error, AssertionError) or not isinstance(error, Exception):
            self._ending = self._ending or error
        if isinstance(error, AssertionError):
            args = codec.encode(())
        else:
            args = codec.encode(tuple(error.args), self.values.export)
        kind = type(error)
        raised = {"g": kind.__name__} if kind.__module__ == "builtins" else self.values.export_exception_class(kind)
        return {"raised": raised, "args": args, "origin": self.values.number_of(error)}
