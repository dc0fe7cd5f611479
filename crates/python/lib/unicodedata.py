"""`unicodedata`, for Latin letters: what programs use to take accents off."""

_MARKS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "-": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    ":": "\u0308",
    "o": "\u030a",
    "d": "\u030b",
    "v": "\u030c",
    ",": "\u0327",
    ";": "\u0328",
}
# From U+00C0 and U+0100 on: a letter and its mark, or two dots for a letter that stays as it is.
_LATIN = (
    "A`A'A^A~A:Ao..C,E`E'E^E:I`I'I^I:..N~O`O'O^O~O:....U`U'U^U:Y'....a`a'a^a~a:ao..c,e`e'e^e:i`i'i^i:..n~o`o'o^o~o:....u`u'u^u:y'..y:"
    "A-a-AuauA;a;C'c'C^c^C.c.CvcvDvdv....E-e-EueuE.e.E;e;EvevG^g^GuguG.g.G,g,H^h^....I~i~I-i-IuiuI;i;I.......J^j^K,k,..L'l'L,l,Lvlv........"
    "N'n'N,n,Nvnv......O-o-OuouOdod....R'r'R,r,RvrvS's'S^s^S,s,SvsvT,t,Tvtv....U~u~U-u-UuuuUouoUdudU;u;W^w^Y^y^Y:Z'z'Z.z.Zvzv.."
)
_PARTS = {
    chr(0xC0 + i): _LATIN[2 * i] + _MARKS[_LATIN[2 * i + 1]]
    for i in range(len(_LATIN) // 2)
    if _LATIN[2 * i : 2 * i + 2] != ".."
}
_WHOLES = {parts: letter for letter, parts in _PARTS.items()}
_FIRST_MARK, _LAST_MARK = "\u0300", "\u036f"


def _check(text):
    for character in text:
        # What follows Latin letters and their marks; general punctuation stays as it is in the canonical forms.
        if not (character <= "\u017e" or _FIRST_MARK <= character <= _LAST_MARK or "\u2010" <= character <= "\u2027"):
            raise NotImplementedError(
                f"unicodedata is modeled for Latin letters only, and {character!r} is none; take it out of the text"
            )


def normalize(form, unistr):
    if unistr.isascii():
        return unistr
    if form not in ("NFC", "NFD"):
        raise NotImplementedError(f"unicodedata.normalize is modeled for NFC and NFD, not {form}")
    _check(unistr)
    parts = "".join(_PARTS.get(character, character) for character in unistr)
    if form == "NFD":
        return parts
    made = ""
    for character in parts:
        whole = _WHOLES.get(made[-1:] + character)
        made = made[:-1] + whole if whole else made + character
    return made


def category(chr):
    if _FIRST_MARK <= chr <= _LAST_MARK:
        return "Mn"
    _check(chr)
    if chr.isalpha():
        return "Lu" if chr.isupper() else "Ll" if chr.islower() else "Lo"
    if chr.isdigit():
        return "Nd" if chr.isdecimal() else "No"
    if chr == " " or chr == "\u00a0":
        return "Zs"
    if chr < " " or "\x7f" <= chr < "\u00a0":
        return "Cc"
    known = {
        "$¢£¤¥": "Sc",
        "+<=>|~¬±×÷": "Sm",
        "^`¨¯´¸": "Sk",
        "_": "Pc",
        "-": "Pd",
        "([{": "Ps",
        ")]}": "Pe",
        "©®°¦": "So",
    }
    return next((kind for letters, kind in known.items() if chr in letters), "Po")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"unicodedata.{name} is not modeled here: normalize and category are")
