#!/usr/bin/env python3
"""Makes the typeface of the page and of its figures: crates/show/figure/typeface, and the widths in crates/show/figure/src/text_width/advances.rs.
Also the wide font of the end-to-end tests, tests/fixtures/fonts.

    python -m venv venv && venv/bin/pip install fonttools==4.68.0 brotli==1.2.1
    venv/bin/python scripts/typeface.py

Needs `npm`, which fetches the fonts in the versions below. The same versions give the same files.
"""

import hashlib
import subprocess
import tarfile
import tempfile
from pathlib import Path

from fontTools import subset
from fontTools.pens.cu2quPen import Cu2QuPen
from fontTools.pens.recordingPen import DecomposingRecordingPen
from fontTools.pens.transformPen import TransformPen
from fontTools.pens.ttGlyphPen import TTGlyphPen
from fontTools.ttLib import TTFont
from fontTools.varLib.instancer import instantiateVariableFont

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "crates/show/figure/typeface"
WIDTHS = ROOT / "crates/show/figure/src/text_width/advances.rs"
WIDE = ROOT / "tests/fixtures/fonts/wide.ttf"

# The package, its version, the file, and the beginning of its SHA-256.
SANS = ("@fontsource-variable/noto-sans", "5.3.0", "files/noto-sans-latin-wght-normal.woff2", "51ca196f49a33e79")
MONO = (
    "@fontsource-variable/noto-sans-mono",
    "5.3.0",
    "files/noto-sans-mono-latin-wght-normal.woff2",
    "71f6c22d5dd256ea",
)
MATH = ("@fontsource/noto-sans-math", "5.3.0", "files/noto-sans-math-latin-400-normal.woff2", "c39a9444f9574734")
SIGNS = (
    "@fontsource/noto-sans-symbols-2",
    "5.3.0",
    "files/noto-sans-symbols-2-symbols-400-normal.woff2",
    "9c07d511848c274b",
)

# ASCII, Latin-1, and the signs of running text.
LETTERS = [*range(0x20, 0x7F), *range(0xA0, 0x100), *map(ord, "–—‘’‚“”„•…‹›€™−")]
# What Noto Sans has in sister fonts.
FROM_MATH = "≤≥≠≈→←↑↓∞"
FROM_SIGNS = "✓✗☐☑"


def fetched(source: tuple[str, str, str, str], folder: Path) -> TTFont:
    """The font of the package."""
    package, version, name, digest = source
    packed = subprocess.run(
        ["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True, capture_output=True, text=True
    )
    with tarfile.open(folder / packed.stdout.strip()) as files:
        path = folder / Path(name).name
        path.write_bytes(files.extractfile(f"package/{name}").read())
        licence = files.extractfile("package/LICENSE").read()
        (folder / f"{path.stem}.license").write_bytes(licence)
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if not found.startswith(digest):
        raise SystemExit(f"{package} {version}: {name} has another content: {found}")
    return TTFont(path)


def of_weight(font: TTFont, weight: int, letters: list[int]) -> TTFont:
    """One weight of a variable font with these letters: without hints, kerning and ligatures, so that the width of a text is the
    sum of the widths of its letters everywhere."""
    one = instantiateVariableFont(font, {"wght": weight}, updateFontNames=False)
    options = subset.Options()
    options.layout_features = []
    options.hinting = False
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
    options.notdef_outline = True
    options.drop_tables += ["GDEF", "GPOS", "GSUB", "STAT", "DSIG", "MVAR", "HVAR"]
    subsetter = subset.Subsetter(options)
    subsetter.populate(unicodes=letters)
    subsetter.subset(one)
    one["OS/2"].usWeightClass = weight
    return one


def add_glyphs(font: TTFont, other: TTFont, letters: str) -> None:
    """Copies the outlines of `letters` from another font."""
    names, glyphs = other.getBestCmap(), other.getGlyphSet()
    scale = font["head"].unitsPerEm / other["head"].unitsPerEm
    assert scale == 1.0, "the fonts have different units"
    order = font.getGlyphOrder()
    for letter in letters:
        name = f"uni{ord(letter):04X}"
        recording = DecomposingRecordingPen(glyphs)
        glyphs[names[ord(letter)]].draw(recording)
        pen = TTGlyphPen(None)
        # Some of the fonts have cubic curves, the others have quadratic ones.
        recording.replay(Cu2QuPen(pen, max_err=0.5, reverse_direction="CFF " in other))
        font.setGlyphOrder([*font.getGlyphOrder(), name])
        font["glyf"][name] = pen.glyph()
        font["glyf"][name].recalcBounds(font["glyf"])
        left = getattr(font["glyf"][name], "xMin", 0)
        font["hmtx"][name] = (round(other["hmtx"][names[ord(letter)]][0]), left)
        for table in font["cmap"].tables:
            if table.isUnicode():
                table.cmap[ord(letter)] = name
    assert len(order) < len(font.getGlyphOrder())


def name_it(font: TTFont, family: str, style: str, weight: int) -> None:
    """Names the font as its family, so that a program finds it by the family and the weight."""
    table = font["name"]
    for record in list(table.names):
        if record.nameID in (1, 2, 3, 4, 6):
            table.removeNames(nameID=record.nameID)
    postscript = f"{family.replace(' ', '')}-{style}"
    for number, text in (
        (1, family),
        (2, style),
        (3, f"{postscript} subset"),
        (4, f"{family} {style}"),
        (6, postscript),
    ):
        table.setName(text, number, 3, 1, 0x409)
    font["OS/2"].usWeightClass = weight


def tighten(font: TTFont) -> None:
    """The box of a line of text ends where the letters end, as in Arial: Noto Sans leaves room for scripts that the subset does not have,
    and two texts that stand close above each other would have boxes that overlap."""
    for name, value in (("ascent", 940), ("descent", -240), ("lineGap", 0)):
        setattr(font["hhea"], name, value)
    for name, value in (
        ("sTypoAscender", 940),
        ("sTypoDescender", -240),
        ("sTypoLineGap", 0),
        ("usWinAscent", 940),
        ("usWinDescent", 240),
    ):
        setattr(font["OS/2"], name, value)


def save(font: TTFont, name: str) -> None:
    """Writes the font for programs, and packed for browsers."""
    font["head"].modified = font["head"].created
    font.recalcTimestamp = False
    font.flavor = None
    font.save(FOLDER / f"{name}.ttf")
    packed = TTFont(FOLDER / f"{name}.ttf", recalcTimestamp=False)
    packed.flavor = "woff2"
    packed.save(FOLDER / f"{name}.woff2")


def write_wide_font(font: TTFont) -> None:
    """The font of the end-to-end tests that nobody chose: every letter 1.4 times as wide as in the page's typeface."""
    glyphs = font.getGlyphSet()
    wide = {}
    for name in font.getGlyphOrder():
        recording, pen = DecomposingRecordingPen(glyphs), TTGlyphPen(None)
        glyphs[name].draw(recording)
        recording.replay(TransformPen(pen, (1.4, 0, 0, 1, 0, 0)))
        wide[name] = pen.glyph()
    for name, glyph in wide.items():
        font["glyf"][name] = glyph
        glyph.recalcBounds(font["glyf"])
        font["hmtx"][name] = (round(font["hmtx"][name][0] * 1.4), getattr(glyph, "xMin", 0))
    name_it(font, "Nobody Chose This", "Regular", 400)
    font["head"].modified = font["head"].created
    font.recalcTimestamp = False
    WIDE.parent.mkdir(exist_ok=True)
    font.save(WIDE)


def table(name: str, about: str, values: list[str]) -> str:
    """A constant of Rust."""
    lines, line = [], "   "
    for value in values:
        if len(line) + len(value) + 2 > 110:
            lines.append(line)
            line = "   "
        line += f" {value},"
    lines.append(line)
    return f"/// {about}\n" + name + " = [\n" + "\n".join(lines) + "\n];\n"


def write_widths(regular: TTFont, bold: TTFont) -> None:
    """Writes the widths as a table for ASCII and Latin-1, and a list for the other characters."""

    def width(font: TTFont, letter: int) -> int:
        units = font["head"].unitsPerEm
        return round(font["hmtx"][font.getBestCmap()[letter]][0] * 1000 / units)

    covered = sorted(regular.getBestCmap())
    assert covered == sorted(bold.getBestCmap())
    latin = [letter for letter in covered if letter < 0x100]
    assert latin == [*range(0x20, 0x7F), *range(0xA0, 0x100)]
    others = [letter for letter in covered if letter >= 0x100]
    text = "//! Written by `scripts/typeface.py`: the widths of the typeface, in thousandths of the font size.\n\n"
    for name, font, words in (("REGULAR", regular, "regular"), ("SEMIBOLD", bold, "semi-bold")):
        text += table(
            f"pub(super) const {name}: [u16; {len(latin)}]",
            f"ASCII from the space to `~`, then Latin-1 from U+00A0: the {words} weight.",
            [str(width(font, letter)) for letter in latin],
        )
        text += "\n"
    rows = [f"('\\u{{{letter:x}}}', {width(regular, letter)}, {width(bold, letter)})" for letter in others]
    text += table(
        f"pub(super) const OTHERS: [(char, u16, u16); {len(others)}]",
        "All other characters in their order: regular, semi-bold.",
        rows,
    )
    WIDTHS.parent.mkdir(exist_ok=True)
    WIDTHS.write_text(text)
    subprocess.run(["rustfmt", "--edition", "2024", WIDTHS], check=True)


def main() -> None:
    """Makes all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        math, signs = fetched(MATH, folder), fetched(SIGNS, folder)
        made = []
        for style, weight, name in (("Regular", 400, "sans-regular"), ("SemiBold", 600, "sans-semibold")):
            font = of_weight(fetched(SANS, folder), weight, LETTERS)
            add_glyphs(font, math, FROM_MATH.translate(dict.fromkeys(font.getBestCmap())))
            add_glyphs(font, signs, FROM_SIGNS)
            tighten(font)
            name_it(font, "Noto Sans", style, weight)
            save(font, name)
            made.append(font)
        mono = of_weight(fetched(MONO, folder), 400, LETTERS)
        tighten(mono)
        name_it(mono, "Noto Sans Mono", "Regular", 400)
        save(mono, "mono-regular")
        write_widths(*made)
        write_wide_font(made[0])
        licences = sorted({path.read_text() for path in folder.glob("*.license")})
        first = licences[0].split("\n", 1)[1]
        heads = [text.split("\n", 1)[0] for text in licences]
        assert all(text.split("\n", 1)[1] == first for text in licences), "the licences differ"
        (FOLDER / "LICENSE").write_text("\n".join(heads) + "\n" + first)
    total = sum(path.stat().st_size for path in FOLDER.glob("*.woff2"))
    print(f"{total} bytes of woff2")
    assert total <= 60_000


main()
