"""The actions of arguments: what a parser does with the values that it reads."""

SUPPRESS, REMAINDER, OPTIONAL, ZERO_OR_MORE, ONE_OR_MORE, PARSER = "==SUPPRESS==", "...", "?", "*", "+", "A..."


class ArgumentError(Exception):
    def __init__(self, argument, message):
        self.argument_name = None if argument is None else argument._name()
        self.message = message
        super().__init__(message if argument is None else f"argument {argument._name()}: {message}")


class ArgumentTypeError(Exception):
    pass


class Namespace:
    def __init__(self, **kwargs):
        self.__dict__.update(kwargs)

    def __eq__(self, other):
        return isinstance(other, Namespace) and vars(self) == vars(other)

    def __contains__(self, key):
        return key in self.__dict__

    def __repr__(self):
        return "Namespace(" + ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items()) + ")"


class HelpFormatter:
    def __init__(self, *args, **kwargs):
        pass


class RawTextHelpFormatter(HelpFormatter):
    pass


RawDescriptionHelpFormatter = ArgumentDefaultsHelpFormatter = MetavarTypeHelpFormatter = RawTextHelpFormatter


class Action:
    _takes_none = ()

    def __init__(
        self,
        option_strings,
        dest,
        nargs=None,
        const=None,
        default=None,
        type=None,
        choices=None,
        required=False,
        help=None,
        metavar=None,
    ):
        self.option_strings, self.dest, self.nargs, self.const, self.default = (
            option_strings,
            dest,
            nargs,
            const,
            default,
        )
        self.type, self.choices, self.required, self.help, self.metavar = type, choices, required, help, metavar

    def _name(self):
        return "/".join(self.option_strings) or (self.metavar if isinstance(self.metavar, str) else None) or self.dest

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class _Constant(Action):
    """Actions that take no value."""

    def __init__(self, option_strings, dest, const=None, default=None, required=False, help=None, metavar=None):
        super().__init__(option_strings, dest, nargs=0, const=const, default=default, required=required, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, self.const)


class _True(_Constant):
    def __init__(self, option_strings, dest, default=False, required=False, help=None):
        super().__init__(option_strings, dest, True, default, required, help)


class _False(_Constant):
    def __init__(self, option_strings, dest, default=True, required=False, help=None):
        super().__init__(option_strings, dest, False, default, required, help)


class _Count(_Constant):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, (getattr(namespace, self.dest, None) or 0) + 1)


class _Append(Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest, None) or []), values])


class _Extend(Action):
    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest, None) or []), *values])


class _Help(_Constant):
    def __call__(self, parser, namespace, values, option_string=None):
        parser.print_help()
        parser.exit()


class _Version(_Constant):
    def __init__(self, option_strings, dest, version=None, default=SUPPRESS, help=None):
        super().__init__(option_strings, dest, default=default, help=help)
        self.version = version

    def __call__(self, parser, namespace, values, option_string=None):
        print(self.version.replace("%(prog)s", parser.prog))
        parser.exit()


class BooleanOptionalAction(Action):
    def __init__(
        self, option_strings, dest, default=None, type=None, choices=None, required=False, help=None, metavar=None
    ):
        every = []
        for option in option_strings:
            every.append(option)
            if option.startswith("--"):
                every.append("--no-" + option[2:])
        super().__init__(every, dest, nargs=0, default=default, required=required, help=help)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, not option_string.startswith("--no-"))


_ACTIONS = {
    None: Action,
    "store": Action,
    "store_const": _Constant,
    "store_true": _True,
    "store_false": _False,
    "append": _Append,
    "extend": _Extend,
    "count": _Count,
    "help": _Help,
    "version": _Version,
}


class _Group:
    def __init__(self, parser, required=False):
        self._parser, self.required, self._actions = parser, required, []

    def add_argument(self, *args, **kwargs):
        action = self._parser.add_argument(*args, **kwargs)
        self._actions.append(action)
        return action

    def add_argument_group(self, *args, **kwargs):
        return self

    def add_mutually_exclusive_group(self, required=False):
        return self._parser.add_mutually_exclusive_group(required=required)


class _Subparsers(Action):
    def __init__(
        self, parser, dest=None, required=False, help=None, metavar=None, title=None, description=None, **kwargs
    ):
        super().__init__([], dest or SUPPRESS, nargs=PARSER, required=required, help=help, metavar=metavar)
        self._parser, self.choices = parser, {}

    def add_parser(self, name, *, aliases=(), help=None, **kwargs):
        kwargs.setdefault("prog", f"{self._parser.prog} {name}")
        from argparse import ArgumentParser

        made = ArgumentParser(**kwargs)
        for alias in (name, *aliases):
            self.choices[alias] = made
        return made
