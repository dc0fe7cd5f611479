"""Writes the archives of Python that the page fetches: `library.zip` is Python's own library, `torch.zip` our packages.

Docstrings are left out. The archives are not compressed: whoever serves them compresses each as a whole, which is
smaller.
"""

import ast
import importlib.util
import marshal
import pathlib
import zipfile

# Modules that a program in a page cannot use, or that are tools: network, processes, terminals, mail, C libraries,
# debuggers, tests. The page's Python says of them that it does not have them.
LEFT_OUT = set(
    """
    __hello__ __phello__ _aix_support _android_support _apple_support _ios_support _markupbase _osx_support _py_abc
    _pyio _pyrepl _sysconfigdata__emscripten_wasm32-emscripten antigravity bdb cProfile cmd code codeop compileall
    ctypes curses dbm doctest email ensurepip filecmp fileinput ftplib getpass html http imaplib ipaddress mailbox
    mimetypes modulefinder multiprocessing netrc nturl2path optparse pdb pickletools poplib profile pstats pty
    py_compile pyclbr pydoc pydoc_data pyodide/_run_js pyodide/console pyodide/ffi/wrappers pyodide/http quopri rlcompleter sched smtplib socketserver sqlite3 ssl stringprep
    symtable tabnanny tarfile this tkinter trace tracemalloc tty turtle unittest urllib/error urllib/request urllib/response urllib/robotparser venv wave webbrowser
    wsgiref xml xmlrpc zipapp
""".split()
)
ENCODINGS = set("__init__ aliases ascii cp437 latin_1 raw_unicode_escape unicode_escape utf_16 utf_8 utf_8_sig".split())
# Modules that few programs import stay source text, which is smaller and is compiled when it is imported.
RARE = set(
    """
    __future__ encodings/cp437 _pydatetime _pylong _strptime calendar colorsys concurrent configparser csv difflib fractions gettext graphlib
    gzip hashlib hmac importlib/metadata locale logging/config logging/handlers lzma pkgutil platform plistlib pprint
    runpy secrets shelve shlex socket statistics subprocess sysconfig timeit tomllib lib/torch/distributions lib/torchvision urllib/parse uuid lib/wandb zipfile zoneinfo
""".split()
)


def is_among(path, names):
    """Whether the path of a file belongs to one of these modules or packages."""
    parts = path.removesuffix(".py").split("/")
    return any("/".join(parts[:length]) in names for length in range(1, len(parts) + 1))


def is_left_out(path):
    if path.startswith("encodings/"):
        return path.removeprefix("encodings/").removesuffix(".py") not in ENCODINGS
    return not path.endswith(".py") or is_among(path, LEFT_OUT)


def without_docstrings(source):
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(ast.Constant(str())) as text, *rest]:
                    node.body = rest or [ast.copy_location(ast.Pass(), text)]
    return tree


def compiled(source, path):
    """The content of a `.pyc` file whose source is never looked for."""
    code = compile(without_docstrings(source), path, "exec", dont_inherit=True, optimize=0)
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def write(target, files):
    """Writes an archive of the files, by their paths. The same files give the same archive."""
    with zipfile.ZipFile(target, "w") as archive:
        # Text is beside text, and code beside code: what is alike compresses well.
        for path, source in sorted(files.items(), key=lambda file: (is_among(file[0], RARE), file[0])):
            if is_among(path, RARE):
                content = ast.unparse(without_docstrings(source)).encode()
            else:
                # Tracebacks say the place below the archive's own.
                content = compiled(source, f"/lib/{target}/{path}")
                path += "c"
            archive.writestr(zipfile.ZipInfo(path), content)


def sources(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in pathlib.Path(folder).rglob("*.py")}


with zipfile.ZipFile("/pyodide/python_stdlib.zip") as original:
    library = {path: original.read(path) for path in original.namelist() if not is_left_out(path)}
    library = {path: source for path, source in library.items() if not path.startswith("asyncio/")}
    missing = {name.replace("/", ".") for name in LEFT_OUT} - {"asyncio"}
library |= sources("/replaced")
library["_left_out.py"] = f"NAMES = {missing}".encode()
write("library.zip", library)
# The packages, and fallbacks for those that a program may bring itself: two folders of the archive.
packages = {"lib": "/ours/lib", "fallbacks": "/ours/fallbacks", "lib/blockyard_keepers": "/keepers"}
write(
    "torch.zip",
    {f"{part}/{path}": source for part, folder in packages.items() for path, source in sources(folder).items()},
)
