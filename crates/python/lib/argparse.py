"""Arguments of the command line."""

import sys as _sys

from _argparse_actions import (
    _ACTIONS,
    ONE_OR_MORE,
    OPTIONAL,
    PARSER,
    REMAINDER,
    SUPPRESS,
    ZERO_OR_MORE,
    Action,
    ArgumentDefaultsHelpFormatter,
    ArgumentError,
    ArgumentTypeError,
    BooleanOptionalAction,
    HelpFormatter,
    MetavarTypeHelpFormatter,
    Namespace,
    RawDescriptionHelpFormatter,
    RawTextHelpFormatter,
    _Append,
    _Constant,
    _Count,
    _Extend,
    _False,
    _Group,
    _Help,
    _Subparsers,
    _True,
    _Version,
)


class ArgumentParser:
    def __init__(
        self,
        prog=None,
        usage=None,
        description=None,
        epilog=None,
        parents=(),
        formatter_class=HelpFormatter,
        prefix_chars="-",
        fromfile_prefix_chars=None,
        argument_default=None,
        conflict_handler="error",
        add_help=True,
        allow_abbrev=True,
        exit_on_error=True,
    ):
        self.prog = prog if prog is not None else str(_sys.argv[0]).rpartition("/")[2]
        self.usage, self.description, self.epilog = usage, description, epilog
        self.argument_default, self.allow_abbrev, self.exit_on_error = argument_default, allow_abbrev, exit_on_error
        self._actions, self._exclusive, self._defaults = [], [], {}
        if add_help:
            self.add_argument("-h", "--help", action="help", default=SUPPRESS, help="show this help message and exit")
        for parent in parents:
            self._actions.extend(action for action in parent._actions if not isinstance(action, _Help))
            self._defaults.update(parent._defaults)

    # --- declaring

    def add_argument(self, *names, action=None, dest=None, **kwargs):
        options = [name for name in names if name.startswith("-")]
        if dest is None:
            if options:
                long = next((name for name in options if name.startswith("--")), options[0])
                dest = long.lstrip("-").replace("-", "_")
            else:
                dest = names[0]
        if "default" not in kwargs and self.argument_default is not None:
            kwargs["default"] = self.argument_default
        kind = _ACTIONS.get(action, action) if action is None or isinstance(action, str) else action
        if isinstance(kind, str):
            raise ValueError(f"unknown action {kind!r}")
        if not options and "required" not in kwargs and kwargs.get("nargs") not in ("?", "*"):
            kwargs["required"] = True
        made = kind(options, dest, **kwargs)
        if made.type is not None and not callable(made.type):
            raise ValueError(f"{made.type!r} is not callable")
        self._actions.append(made)
        return made

    def add_argument_group(self, *args, **kwargs):
        return _Group(self)

    def add_mutually_exclusive_group(self, required=False):
        group = _Group(self, required)
        self._exclusive.append(group)
        return group

    def add_subparsers(self, **kwargs):
        made = _Subparsers(self, **kwargs)
        self._actions.append(made)
        return made

    def set_defaults(self, **kwargs):
        self._defaults.update(kwargs)
        for action in self._actions:
            if action.dest in kwargs:
                action.default = kwargs[action.dest]

    def get_default(self, dest):
        return next(
            (a.default for a in self._actions if a.dest == dest and a.default is not None), self._defaults.get(dest)
        )

    # --- parsing

    def parse_args(self, args=None, namespace=None):
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            self.error("unrecognized arguments: " + " ".join(rest))
        return found

    parse_intermixed_args = parse_args

    def parse_known_args(self, args=None, namespace=None):
        args = list(_sys.argv[1:] if args is None else args)
        namespace = Namespace() if namespace is None else namespace
        for action in self._actions:
            if action.dest is not SUPPRESS and action.default is not SUPPRESS and not hasattr(namespace, action.dest):
                setattr(namespace, action.dest, action.default)
        for key, value in self._defaults.items():
            if not hasattr(namespace, key):
                setattr(namespace, key, value)
        try:
            return self._parse(args, namespace)
        except ArgumentError as error:
            if not self.exit_on_error:
                raise
            self.error(str(error))

    def _parse(self, args, namespace):
        options = {name: action for action in self._actions for name in action.option_strings}
        positionals = [action for action in self._actions if not action.option_strings]
        seen, rest, at, only_values = set(), [], 0, False
        while at < len(args):
            arg = args[at]
            if arg == "--" and not only_values:
                only_values = True
                at += 1
                continue
            found = None if only_values else self._option(arg, options)
            if found is not None:
                action, name, attached = found
                at += 1
                values = [] if attached is None else [attached]
                if attached is None:
                    most = self._most(action)
                    while len(values) < most and at < len(args) and not self._is_option(args[at], options):
                        values.append(args[at])
                        at += 1
                seen.add(action)
                self._check_exclusive(action, seen)
                self._take(action, values, namespace, name)
            elif arg.startswith("-") and not only_values and not self._is_number(arg) and len(arg) > 1:
                rest.append(arg)
                at += 1
            elif positionals:
                action = positionals.pop(0)
                if isinstance(action, _Subparsers):
                    if arg not in action.choices:
                        raise ArgumentError(
                            action, f"invalid choice: {arg!r} (choose from {', '.join(map(repr, action.choices))})"
                        )
                    if action.dest is not SUPPRESS:
                        setattr(namespace, action.dest, arg)
                    seen.add(action)
                    _, more = action.choices[arg].parse_known_args(args[at + 1 :], namespace)
                    rest.extend(more)
                    break
                values, most = [], self._most(action)
                keep = sum(1 for other in positionals if other.nargs not in ("?", "*"))
                while len(values) < most and at < len(args) and not self._is_option(args[at], options):
                    if values and action.nargs in ("*", "+") and len(args) - at <= keep:
                        break
                    values.append(args[at])
                    at += 1
                seen.add(action)
                self._take(action, values, namespace, None)
            else:
                rest.append(arg)
                at += 1
        missing = [action._name() for action in self._actions if action.required and action not in seen]
        if missing:
            raise ArgumentError(None, "the following arguments are required: " + ", ".join(missing))
        for group in self._exclusive:
            if group.required and not any(action in seen for action in group._actions):
                raise ArgumentError(
                    None, "one of the arguments " + " ".join(a._name() for a in group._actions) + " is required"
                )
        for action in self._actions:
            if (
                action not in seen
                and isinstance(action.default, str)
                and action.type is not None
                and action.dest is not SUPPRESS
            ):
                if getattr(namespace, action.dest, None) is action.default:
                    setattr(namespace, action.dest, self._convert(action, action.default))
        return namespace, rest

    def _check_exclusive(self, action, seen):
        for group in self._exclusive:
            if action in group._actions:
                for other in group._actions:
                    if other is not action and other in seen:
                        raise ArgumentError(action, f"not allowed with argument {other._name()}")

    @staticmethod
    def _most(action):
        if action.nargs is None or action.nargs == "?":
            return 1
        return action.nargs if isinstance(action.nargs, int) else 1 << 30

    @staticmethod
    def _is_number(text):
        try:
            float(text)
        except ValueError:
            return False
        return True

    def _is_option(self, text, options):
        return text == "--" or text in options or text.startswith("-") and len(text) > 1 and not self._is_number(text)

    def _option(self, arg, options):
        if not arg.startswith("-") or arg == "-":
            return None
        if arg in options:
            return options[arg], arg, None
        name, equals, value = arg.partition("=")
        if equals and name in options:
            return options[name], name, value
        if arg.startswith("--") and self.allow_abbrev:
            fitting = [option for option in options if option.startswith(name)]
            if len(fitting) > 1:
                raise ArgumentError(None, f"ambiguous option: {arg} could match {', '.join(fitting)}")
            if fitting:
                return options[fitting[0]], fitting[0], value if equals else None
        elif arg[:2] in options and not arg.startswith("--"):
            return options[arg[:2]], arg[:2], arg[2:].lstrip("=")
        return None

    def _take(self, action, values, namespace, name):
        if action.nargs is None:
            if not values:
                raise ArgumentError(action, "expected one argument")
            value = self._checked(action, values[0])
        elif action.nargs == "?":
            value = (
                self._checked(action, values[0]) if values else (action.const if name is not None else action.default)
            )
        elif action.nargs == 0:
            if values:
                raise ArgumentError(action, f"ignored explicit argument {values[0]!r}")
            value = []
        else:
            if action.nargs == "+" and not values:
                raise ArgumentError(action, "expected at least one argument")
            if isinstance(action.nargs, int) and len(values) != action.nargs:
                raise ArgumentError(action, f"expected {action.nargs} argument{'s' if action.nargs > 1 else ''}")
            value = [self._checked(action, text) for text in values]
        action(self, namespace, value, name)

    def _convert(self, action, text):
        if action.type is None:
            return text
        try:
            return action.type(text)
        except ArgumentTypeError as error:
            raise ArgumentError(action, str(error)) from None
        except (TypeError, ValueError):
            raise ArgumentError(
                action, f"invalid {getattr(action.type, '__name__', repr(action.type))} value: {text!r}"
            ) from None

    def _checked(self, action, text):
        value = self._convert(action, text)
        if action.choices is not None and value not in action.choices:
            raise ArgumentError(
                action, f"invalid choice: {value!r} (choose from {', '.join(map(repr, action.choices))})"
            )
        return value

    # --- telling

    def _shown(self, action):
        if action.nargs == 0:
            return ""
        name = action.metavar or (
            "{" + ",".join(map(str, action.choices)) + "}"
            if action.choices is not None
            else action.dest.upper()
            if action.option_strings
            else action.dest
        )
        if isinstance(name, tuple):
            return " ".join(name)
        if isinstance(action.nargs, int):
            return " ".join([name] * action.nargs)
        return {None: name, "?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(
            action.nargs, f"{name} ..."
        )

    def format_usage(self):
        if self.usage is not None:
            return f"usage: {self.usage}\n"
        parts = [self.prog]
        for action in self._actions:
            if action.option_strings:
                text = (action.option_strings[0] + " " + self._shown(action)).strip()
                parts.append(text if action.required else f"[{text}]")
        parts += [self._shown(action) for action in self._actions if not action.option_strings]
        return "usage: " + " ".join(parts) + "\n"

    def format_help(self):
        lines = [self.format_usage()]
        if self.description:
            lines.append(self.description + "\n")
        for title, wanted in (("positional arguments", False), ("options", True)):
            actions = [
                action
                for action in self._actions
                if bool(action.option_strings) == wanted and action.help is not SUPPRESS
            ]
            if not actions:
                continue
            lines.append(title + ":")
            for action in actions:
                names = ", ".join(
                    (name + " " + self._shown(action)).strip() for name in action.option_strings
                ) or self._shown(action)
                text = action.help % {**vars(action), "prog": self.prog} if action.help else ""
                lines.append(
                    f"  {names:<20}  {text}".rstrip() if len(names) <= 20 else f"  {names}\n{'':24}{text}".rstrip()
                )
            lines.append("")
        if self.epilog:
            lines.append(self.epilog + "\n")
        return "\n".join(lines)

    def print_usage(self, file=None):
        print(self.format_usage(), end="", file=file)

    def print_help(self, file=None):
        print(self.format_help(), end="", file=file)

    def exit(self, status=0, message=None):
        if message:
            print(message, end="", file=_sys.stderr)
        _sys.exit(status)

    def error(self, message):
        self.print_usage(_sys.stderr)
        self.exit(2, f"{self.prog}: error: {message}\n")


class FileType:
    def __init__(self, mode="r", *args, **kwargs):
        self._mode = mode

    def __call__(self, name):
        return open(name, self._mode)
