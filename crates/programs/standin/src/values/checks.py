"""Finds the check that an unknown value decides, in the bytecode of the line that reads the value.

A check is a condition of which one side raises: `assert a`, `if a: raise`. Which value makes it pass is found
by following the instructions after the read, once for each value. A value that a function returns is followed
in its caller. Where it is not sure, nothing is decided.
"""

import bisect
import builtins
import ctypes
import dis
import math
import operator
import struct
import types

_SIGNS = {
    "<": operator.lt, "<=": operator.le, "==": operator.eq, "!=": operator.ne, ">": operator.gt,
    ">=": operator.ge, "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv,
}  # fmt: skip
# Python 3.10 has an instruction for each.
_OLDER_SIGNS = {
    "BINARY_ADD": "+", "BINARY_SUBTRACT": "-", "BINARY_MULTIPLY": "*", "BINARY_TRUE_DIVIDE": "/",
}  # fmt: skip
_FUNCTIONS = {
    "abs": abs, "bool": bool, "float": float, "int": int,
    "isfinite": math.isfinite, "isinf": math.isinf, "isnan": math.isnan,
}  # fmt: skip
# Instructions that only make values, beside those of these beginnings.
_MAKES = ("BINARY_", "BUILD_", "CALL", "FORMAT_", "LOAD_", "MATCH_", "ROT_", "UNARY_")
_MAKES_TOO = set(
    """COMPARE_OP CONTAINS_OP CONVERT_VALUE COPY DICT_MERGE DUP_TOP DUP_TOP_TWO GET_ITER GET_LEN IS_OP
    LIST_EXTEND LIST_TO_TUPLE MAKE_FUNCTION PUSH_NULL SET_FUNCTION_ATTRIBUTE SWAP TO_BOOL""".split()
)
_NOTHING = {"CACHE", "EXTENDED_ARG", "KW_NAMES", "NOP", "NOT_TAKEN", "POP_BLOCK", "PRECALL", "RESUME"}
_STORES = {"STORE_FAST", "STORE_NAME", "STORE_GLOBAL", "STORE_DEREF"}
# Instructions after which another one than the next runs, or none.
_LEAVES = ("RAISE_", "RERAISE", "RETURN_", "YIELD_", "SEND", "FOR_ITER", "SETUP_", "BEFORE_", "LOAD_SPECIAL")
# Exceptions that end a loop or the program as planned: no check raises them.
_PLANNED = {"StopIteration", "StopAsyncIteration", "GeneratorExit", "KeyboardInterrupt", "SystemExit"}
# Methods that always raise: those of unittest and of `torch.testing`.
_RAISING = {"fail", "_fail"}
# The bits of PyTorch's first types: `uint8`, `int8`, `int16`, `int32`, `int64`.
_BITS = (8, 8, 16, 32, 64)
# The most instructions that are looked at for one value, and the most functions that give a value on.
_MAX_SEEN = 10_000
_MAX_CALLERS = 6
# Bits of `co_flags`: `*args` and `**kwargs`.
_WRAPPER = 0x0C
_UNKNOWN = object()


class _Value:
    """A value on the interpreter's stack, as far as it is known: itself, its truth, its last name."""

    def __init__(self, known=_UNKNOWN, name=None, truth=None):
        self.known, self.name = known, name
        self.truth = truth if known is _UNKNOWN else bool(known)


def _number(value, name=None):
    return _Value(value if type(value) in (bool, int, float, str, type(None)) else _UNKNOWN, name)


class _Code:
    """The instructions of a function: each with its plain name and the place of its target."""

    def __init__(self, code):
        self.code = code
        steps = list(dis.get_instructions(code))
        self.steps = [step for step in steps if step.opname not in _NOTHING]
        self.offsets = [step.offset for step in self.steps]
        places = {step.offset: bisect.bisect_left(self.offsets, step.offset) for step in steps}
        jumps = {*dis.hasjrel, *dis.hasjabs}
        self.targets = [places.get(step.argval) if step.opcode in jumps else None for step in self.steps]
        self.names = [_plain(step.opname) for step in self.steps]
        self.leaders = {target for target in self.targets if target is not None}
        self.raising = {}
        # The instructions that give a value to the caller.
        self.gives = "YIELD_VALUE" if code.co_name == "<genexpr>" else "RETURN_"
        self.has_checks = any(map(self._is_raise, range(len(self.steps))))

    def _is_raise(self, place):
        name = self.names[place]
        is_method = name in ("LOAD_ATTR", "LOAD_METHOD") and self.steps[place].argval in _RAISING
        return name == "RAISE_VARARGS" or is_method

    def first(self, place):
        """An instruction before this one, at best the beginning of the expression.

        From there this one is reached if no condition jumps.
        """
        read = place
        while place > 0:
            before, earlier = self.names[place - 1], self.names[max(0, place - 2)]
            if before in _STORES:
                is_statement = earlier not in ("COPY", "DUP_TOP")
            else:
                is_cleanup = "JUMP_IF_" in earlier or earlier in ("SWAP", "ROT_TWO")
                is_statement = before == "POP_TOP" and not is_cleanup
            is_past = before == "JUMP" and not place <= self.targets[place - 1] <= read
            if is_statement or is_past or before.startswith(_LEAVES) or "EXC_MATCH" in before:
                break
            place -= 1
        return place

    def raises(self, place):
        """Whether each way from here ends in an exception that a check would raise."""
        if place not in self.raising:
            self.raising[place] = self._raises(place)
        return self.raising[place]

    def _raises(self, place):
        seen, left, is_raised = set(), [place], False
        while left:
            place = left.pop()
            if place in seen:
                continue
            seen.add(place)
            step, name, target = self.steps[place], self.names[place], self.targets[place]
            if name.startswith(("RETURN_", "RERAISE", "YIELD_", "SEND")) or len(seen) > _MAX_SEEN:
                return False
            if name in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval in _PLANNED:
                return False
            if self._is_raise(place):
                is_raised = True
                continue
            if target is not None and not name.startswith("SETUP_"):
                left.append(target)
            if name != "JUMP":
                left.append(place + 1)
        return is_raised

    def end(self, place):
        """What two copies of the same end have in common: a compiler repeats a short one."""
        parts = []
        for step in self.steps[place : place + 6]:
            parts.append((step.opname, step.argrepr))
            if step.opname.startswith("RETURN_"):
                return tuple(parts)
            if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
                break
        return "place", place


def _plain(name):
    for part in ("_FORWARD", "_BACKWARD", "_NO_INTERRUPT", "_ABSOLUTE", "_BORROW", "_CHECK"):
        name = name.replace(part, "")
    return name


class _TooLongError(Exception):
    pass


class _Read:
    """A read of an unknown value: the line's instructions, and the one that reads.

    In the caller of a function, the call is the read of the value that the function (`callee`) returns.
    """

    def __init__(self, frame, callee=None, depth=0, numbers=None):
        self.frame, self.code, self.callee, self.depth = frame, _code(frame.f_code), callee, depth
        # While a function runs, this may be within the instruction that called.
        self.place = bisect.bisect_right(self.code.offsets, frame.f_lasti) - 1
        self.numbers = set() if numbers is None else numbers
        self.left = _MAX_SEEN

    def ends(self, number):
        """The ways from the read to the ends of its condition, if the value is this number.

        `None` where the read is of no known kind. Each way is whether it raises, how likely it is, and the
        places that it passes.
        """
        self.is_read, self.found = False, []
        if self.callee is None:
            self.left = _MAX_SEEN
        self._follow(self.code.first(self.place), [], {}, 1.0, (), number, is_first=True)
        return self.found if self.is_read else None

    def _end(self, place, share, way, is_back=False):
        is_raised = not is_back and self.code.raises(place)
        end = ("back", place) if is_back else self.code.end(place)
        self.found.append((is_raised, share, (*way, (self.depth, end))))

    def _give(self, value, place, share, way):
        """Goes on in the caller with a value that the function returns, or that a generator yields."""
        caller, ends = self.frame.f_back, None
        if value.known is not _UNKNOWN and caller is not None and self.depth < _MAX_CALLERS:
            read = _Read(caller, self.frame.f_code, self.depth + 1, self.numbers)
            read.left = self.left
            ends = read.ends(value.known)
            self.left = read.left
        if ends is None:
            self._end(place, share, way)
        else:
            self.found.extend((is_raised, share * part, (*way, *more)) for is_raised, part, more in ends)

    def _follow(self, place, stack, names, share, way, number, is_first=False):
        """Follows a condition from an instruction; `share` is how likely that is, `way` the places before."""
        code, begin, base, is_bare, before = self.code, place, len(stack), True, None
        while True:
            self.left -= 1
            if self.left < 0 or place >= len(code.steps):
                raise _TooLongError
            step, name, target = code.steps[place], code.names[place], code.targets[place]
            is_read = is_first and place == self.place
            is_before = is_first and place < self.place
            if is_before and place in code.leaders and stack:
                # Which of several values this is, is not known.
                stack[-1] = _Value(name=stack[-1].name)
            if is_read and not self._read(step, name, stack, number):
                self._end(begin, share, way)
                return
            if is_before and target is not None:
                if name == "JUMP":
                    place = target
                else:
                    _take(stack, 1)
                    place += 1
                continue
            if is_read and name == "FOR_ITER":
                place += 1
                continue
            if target is not None:
                if target <= place and name == "JUMP":
                    self._end(target, share, way, is_back=True)
                    return
                if name == "JUMP":
                    place = target
                    if is_bare and not is_first:
                        begin, base = place, len(stack)
                    continue
                if "JUMP_IF_" not in name or "EXC_MATCH" in name:
                    self._end(begin, share, way)
                    return
                passed = way if is_first else (*way, (self.depth, code.end(begin)))
                self._branch(place, stack, names, share, passed, number)
                return
            if is_read:
                pass
            elif name in ("POP_TOP", "POP_ITER") and len(stack) <= base:
                # A value from before the condition.
                if stack:
                    stack.pop()
                base = len(stack)
            elif name in _STORES and (is_first or stack):
                is_bare = False
                names[step.argval] = stack.pop() if stack else _Value()
            elif name == "STORE_FAST_STORE_FAST" and (is_first or stack):
                is_bare = False
                for variable in step.argval:
                    names[variable] = stack.pop() if stack else _Value()
            elif name == "STORE_FAST_LOAD_FAST" and (is_first or stack):
                is_bare = False
                names[step.argval[0]] = stack.pop() if stack else _Value()
                stack.append(self._load("LOAD_FAST", step.argval[1], names))
            elif name.startswith(self.code.gives):
                value = _number(step.argval) if name == "RETURN_CONST" else _take(stack, 1)[0]
                self._give(value, begin, share, way)
                return
            elif name.startswith(_LEAVES) or not (is_first or name in _MAKES_TOO or name.startswith(_MAKES)):
                self._end(begin, share, way)
                return
            else:
                is_bare = False
                grown = self._make(step, name, stack, names)
                base += grown
            before = step.opname
            place += 1
            if is_bare and not is_first:
                begin, base = place, len(stack)

    def _branch(self, place, stack, names, share, way, number):
        step, name, target = self.code.steps[place], self.code.names[place], self.code.targets[place]
        value = stack.pop() if stack else _Value()
        if "NONE" in name:
            truth = None if value.known is _UNKNOWN else (value.known is None) != ("NOT_NONE" in name)
        else:
            truth = value.truth if "TRUE" in name or value.truth is None else not value.truth
        for jumps in (True, False) if truth is None else (truth,):
            part = share if truth is not None else share / 2
            here = value
            if truth is None and "NONE" not in name:
                here = _Value(name=value.name, truth=jumps == ("TRUE" in name))
            # Beside the value that decides, the stack may have copies of the value.
            there = [here if item is value else item for item in stack]
            if jumps and "OR_POP" in name:
                there.append(here)
            if not jumps:
                self._follow(place + 1, there, dict(names), part, way, number)
            elif target <= place:
                self._end(target, part, way, is_back=True)
            else:
                self._follow(target, there, dict(names), part, way, number)

    def _read(self, step, name, stack, number):
        """Does what the reading instruction does with the value; false where that is not known."""
        if self.callee is not None:
            self.is_read = self._read_call(step, name, stack, number)
            return self.is_read
        self.is_read = True
        if "JUMP_IF_" in name or name in ("TO_BOOL", "UNARY_NOT"):
            if not stack:
                stack.append(_Value())
            stack[-1].truth = bool(number)
            if "JUMP_IF_" not in name:
                stack[-1] = _Value(bool(number) != (name == "UNARY_NOT"))
            return "NONE" not in name
        if name == "COMPARE_OP" and step.argrepr.startswith("bool("):
            _take(stack, 2)
            stack.append(_Value(bool(number)))
            return True
        if name.startswith("CALL"):
            called, _ = self._called(step, stack)
            if called in ("item", "bool", "float", "int"):
                stack.append(_Value(_FUNCTIONS.get(called, lambda value: value)(number)))
                return True
            if called in ("allclose", "equal", "is_nonzero"):
                stack.append(_Value(bool(number)))
                return True
            if called in ("all", "any"):
                # Others may follow, unless this one decides.
                stack.append(_Value(bool(number)) if bool(number) == (called == "any") else _Value())
                return True
        self.is_read = False
        return False

    def _read_call(self, step, name, stack, value):
        """Does what a call does whose function returned this value; false where it is not sure."""
        callee = self.callee.co_name
        if name == "LOAD_ATTR" and step.argval == callee:
            # A property.
            _take(stack, 1)
        elif name == "CONTAINS_OP" and callee == "__contains__":
            _take(stack, 2)
            value = bool(value) != bool(step.arg)
        elif name == "FOR_ITER" and callee == "<genexpr>":
            # Python 3.14 calls no `all` and no `any` of a generator.
            pass
        elif name.startswith("CALL"):
            called, _ = self._called(step, stack)
            if callee == "<genexpr>":
                if called not in ("all", "any"):
                    return False
                # Others may follow, unless this one decides.
                value = bool(value) if bool(value) == (called == "any") else _UNKNOWN
            elif called != callee and not self._is_other_name(called):
                # The function of a decorator gives on what it is given.
                is_wrapper = self.callee.co_flags & _WRAPPER == _WRAPPER
                if not (is_wrapper or step.opname == "CALL_FUNCTION_EX") or hasattr(builtins, called or ""):
                    return False
        else:
            return False
        stack.append(_Value(value))
        return True

    def _is_other_name(self, called):
        """Whether a variable of this name has the function that returned."""
        kinds = ("LOAD_FAST", "LOAD_GLOBAL") if called else ()
        objects = (self._variable(kind, called) for kind in kinds)
        return any(type(found) is types.FunctionType and found.__code__ is self.callee for found in objects)

    def _called(self, step, stack):
        """Takes a call from the stack: the last name of what is called, and the arguments."""
        count = step.arg or 0
        total = count + 2 if step.opname == "CALL" else 1 - dis.stack_effect(step.opcode, step.arg)
        taken = _take(stack, total)
        heads = taken[:1] if step.opname == "CALL_FUNCTION" else taken[:2]
        name = next((head.name for head in heads if head.name), None)
        has_plain_arguments = step.opname in ("CALL", "CALL_FUNCTION", "CALL_METHOD")
        return name, taken[len(taken) - count :] if has_plain_arguments else None

    def _variable(self, name, variable):
        """The object of a variable, by the instruction that loads it; unknown where that is not sure."""
        try:
            if name == "LOAD_GLOBAL":
                return self.frame.f_globals.get(variable, _UNKNOWN)
            if name == "LOAD_NAME":
                return self.frame.f_locals.get(variable, _UNKNOWN)
            if name in ("LOAD_FAST", "LOAD_DEREF") and _variable is not None:
                return _variable(self.frame, variable)
        except Exception:
            # It has no value yet.
            pass
        return _UNKNOWN

    def _load(self, name, variable, names):
        """The value of a variable, where it is a number that can be had without touching the variable."""
        if variable in names:
            return names[variable]
        value = self._variable(name, variable)
        made = _number(value, variable)
        self._note(made)
        return made

    def _note(self, value):
        if type(value.known) in (bool, int, float):
            self.numbers.add(value.known)

    def _make(self, step, name, stack, names):
        """Does what an instruction does that makes values; returns by how much the stack grew below."""
        grown = 0
        sign = _OLDER_SIGNS.get(name, step.argrepr.removeprefix("bool(").removesuffix(")"))
        if name in ("LOAD_CONST", "LOAD_SMALL_INT"):
            stack.append(_number(step.argval))
            self._note(stack[-1])
        elif name in ("LOAD_FAST", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF"):
            stack.append(self._load(name, step.argval, names))
            if dis.stack_effect(step.opcode, step.arg) == 2:
                # A place for the object of a method, before or after the function.
                stack.append(_Value())
                if _is_null_first:
                    stack[-2:] = stack[:-3:-1]
        elif name in ("POP_TOP", "POP_ITER"):
            _take(stack, 1)
        elif name == "PUSH_NULL":
            stack.append(_Value())
        elif name == "LOAD_FAST_LOAD_FAST":
            stack.extend(self._load("LOAD_FAST", variable, names) for variable in step.argval)
        elif name in ("LOAD_ATTR", "LOAD_METHOD"):
            _take(stack, 1)
            stack.append(_Value(name=step.argval))
            if dis.stack_effect(step.opcode, step.arg) == 1:
                stack.append(_Value())
        elif name in ("COPY", "DUP_TOP"):
            grown = _reach(stack, step.arg or 1)
            stack.append(stack[-(step.arg or 1)])
        elif name in ("SWAP", "ROT_TWO"):
            count = step.arg or 2
            grown = _reach(stack, count)
            stack[-1], stack[-count] = stack[-count], stack[-1]
        elif name in ("ROT_THREE", "ROT_FOUR"):
            count = 3 if name == "ROT_THREE" else 4
            grown = _reach(stack, count)
            stack.insert(len(stack) - count, stack.pop())
        elif name in ("TO_BOOL", "UNARY_NOT"):
            (value,) = _take(stack, 1)
            if value.truth is not None:
                value = _Value(value.truth != (name == "UNARY_NOT"))
            elif name == "UNARY_NOT":
                value = _Value()
            stack.append(value)
        elif name == "IS_OP":
            first, second = _take(stack, 2)
            is_known = _UNKNOWN not in (first.known, second.known)
            stack.append(_Value((first.known is second.known) != bool(step.arg)) if is_known else _Value())
        elif name in ("COMPARE_OP", "BINARY_OP") or name in _OLDER_SIGNS:
            first, second = _take(stack, 2)
            stack.append(_computed(_SIGNS.get(sign), [first, second]))
        elif name.startswith("CALL"):
            called, arguments = self._called(step, stack)
            if called == "bool" and arguments and arguments[0].truth is not None:
                stack.append(_Value(arguments[0].truth))
            else:
                stack.append(_computed(_FUNCTIONS.get(called), arguments))
        else:
            effect = dis.stack_effect(step.opcode, step.arg)
            if not (name in _MAKES_TOO or name.startswith(_MAKES)):
                # Whatever a statement takes or stores is no longer known.
                stack[:] = [_Value() for _ in stack]
                if name.startswith(("STORE_", "DELETE_")):
                    names.clear()
                _take(stack, max(0, -effect))
            elif effect <= 0:
                _take(stack, 1 - effect)
                effect = 1
            stack.extend(_Value() for _ in range(effect))
        return grown


def _reach(stack, count):
    """Makes the stack as long as an instruction needs it; returns by how much."""
    missing = max(0, count - len(stack))
    stack[:0] = [_Value() for _ in range(missing)]
    return missing


def _take(stack, count):
    _reach(stack, count)
    taken = stack[len(stack) - count :]
    del stack[len(stack) - count :]
    return taken


def _computed(function, arguments):
    numbers = [value.known for value in arguments or [] if type(value.known) in (bool, int, float)]
    if function is None or arguments is None or len(numbers) < len(arguments):
        return _Value()
    try:
        return _number(function(*numbers))
    except (ArithmeticError, TypeError, ValueError):
        return _Value()


# Python 3.11 and 3.12 put the place for a method's object before the function.
_is_null_first = "PRECALL" in dis.opmap or "KW_NAMES" in dis.opmap
try:
    # A local variable without the dictionary of all, which would keep tensors: from Python 3.12 on.
    _variable = ctypes.pythonapi.PyFrame_GetVar
    _variable.restype, _variable.argtypes = ctypes.py_object, [ctypes.py_object, ctypes.py_object]
except AttributeError:
    _variable = None

_CODES = {}


def _code(code):
    found = _CODES.get(id(code))
    if found is None:
        found = _CODES[id(code)] = _Code(code)
    return found


def _fitting(kind, numbers):
    """The finite ones of these numbers as values of a tensor's type, without repetition."""
    fitting = []
    for number in filter(math.isfinite, numbers):
        if kind < 5:
            number = int(number)
            is_there = -(1 << _BITS[kind] - 1) <= number < 1 << _BITS[kind] - 1 and (kind > 0 or number >= 0)
        elif kind == 6:
            is_there = abs(number) < 1e38
            number = struct.unpack("f", struct.pack("f", number))[0] if is_there else number
        else:
            # Types of 16 bits have all small integers.
            is_there = kind == 7 or number in range(-256, 257)
        if is_there and number not in fitting:
            fitting.append(number)
    return fitting


def passing(frame, kind, number):
    """The number with which the check around a read passes.

    `None` if there is no check, if this number passes, or if it is not sure which one does. `kind` is
    PyTorch's number of the type.
    """
    while frame is not None and frame.f_code.co_name == "__torch_function__":
        # It gives the value on.
        frame = frame.f_back
    if frame is None or kind not in (0, 1, 2, 3, 4, 5, 6, 7, 11, 15):
        return None
    callers, depth = frame, 0
    while callers is not None and depth <= _MAX_CALLERS and not _code(callers.f_code).has_checks:
        callers, depth = callers.f_back, depth + 1
    if callers is None or depth > _MAX_CALLERS:
        return None
    read = _Read(frame)
    number = bool(number) if kind == 11 else int(number) if kind < 5 else number
    try:
        ends = read.ends(number)
        if not any(is_raised for is_raised, _, _ in ends or []):
            return None
        best, least = None, 1.0
        near = [value + more for value in sorted(read.numbers) for more in (0, 1, -1)]
        for other in [not number] if kind == 11 else _fitting(kind, [0, 1, -1, *near]):
            now, then = _compared(ends, read.ends(other))
            if then < min(now, least):
                best, least = other, then
        return best
    except _TooLongError:
        return None


def _compared(ends, others):
    """How likely a condition raises, with one number and with another.

    What raises after the place where all other ways of both meet is another condition's.
    """
    ways = [way for is_raised, _, way in (*ends, *others) if not is_raised]
    if all(is_raised for is_raised, _, _ in ends):
        meeting = None
    else:
        meeting = next((place for place in ways[0] if all(place in way for way in ways)), None)
        if meeting is None:
            return 0.0, 0.0
    return tuple(
        sum(share for is_raised, share, way in some if is_raised and meeting not in way) for some in (ends, others)
    )
