"""The name and the system of the machine that a program finds."""


def system():
    return "Linux"


def machine():
    return "x86_64"


processor = machine


def platform(aliased=False, terse=False):
    return "Linux-x86_64"


def python_version():
    return "3.12.0"


def node():
    return "localhost"


def release():
    return ""


version = release


def python_implementation():
    return "CPython"
