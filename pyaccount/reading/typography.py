"""Characters that look like others and mean something else: unusual spaces, typographic minus signs and quotes.

They come from word processors, web pages and PDF files from which documents are pasted. Documents accept none of them;
messages name the character and say what to write instead.
"""

from __future__ import annotations

import re
import unicodedata

#: Unusual spaces, which YAML treats as letters, and invisible characters, each with its name and the ordinary
#: character.
UNSEEN: dict[str, tuple[str, str]] = {
    "\u00a0": ("a no-break space", " "),
    "\u2007": ("a figure space", " "),
    "\u2009": ("a thin space", " "),
    "\u202f": ("a narrow no-break space", " "),
    "\u3000": ("an ideographic space", " "),
    **{chr(code): ("a typographic space", " ") for code in (*range(0x2000, 0x2007), 0x2008, 0x200A, 0x205F)},
    "\u00ad": ("a soft hyphen", ""),
    "\u200b": ("a zero-width space", ""),
    "\u200c": ("a zero-width non-joiner", ""),
    "\u200d": ("a zero-width joiner", ""),
    "\u2060": ("a word joiner", ""),
    "\ufeff": ("a byte order mark", ""),
    **{chr(code): ("a mark of the writing direction", "") for code in (0x200E, 0x200F, *range(0x202A, 0x202F))},
    **{chr(code): ("a mark of the writing direction", "") for code in range(0x2066, 0x206A)},
}
#: Visible characters that are mistaken for the ordinary one, each with its name and the ordinary character.
_SEEN: dict[str, tuple[str, str]] = {
    "−": ("a typographic minus", "-"),
    **dict.fromkeys("‐‑‒–—﹣－", ("a typographic hyphen or dash", "-")),
    **dict.fromkeys("“”„‟«»＂", ("a typographic quotation mark", '"')),
    **dict.fromkeys("‘’‚‛‹›＇", ("a typographic quotation mark", "'")),
    "：": ("a full-width colon", ":"),
    "，": ("a full-width comma", ","),
    "．": ("a full-width full stop", "."),
    "＝": ("a full-width equals sign", "="),
    **{chr(0xFF10 + digit): ("a full-width digit", str(digit)) for digit in range(10)},
}
_ALL = UNSEEN | _SEEN
_ODD = re.compile(f"[{''.join(map(re.escape, _ALL))}]")
_TO_PLAIN = str.maketrans({char: plain for char, (_, plain) in _ALL.items()})
#: Superscript digits and signs, as in 10⁻⁵.
_RAISED = re.compile("([0-9])([⁺⁻]?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")


def plain_text(text: str) -> str:
    """Return the text with the characters that were probably meant, stripped of space: `10⁻⁵` becomes `10^-5`."""
    raised = _RAISED.sub(lambda found: f"{found[1]}^{unicodedata.normalize('NFKC', found[2])}", text)
    return raised.translate(_TO_PLAIN).strip()


def character_name(char: str) -> str:
    """Return the name of one of these characters: `a no-break space (U+00A0)`, `a typographic minus − (U+2212)`."""
    seen = f" {char}" if char in _SEEN else ""
    return f"{_ALL[char][0]}{seen} (U+{ord(char):04X})"


def instead(char: str) -> str:
    """Return what to write instead of one of these characters."""
    meant = _ALL[char][1]
    if char in UNSEEN:
        return "write an ordinary space" if meant else "delete it"
    return f"write straight quotes ({meant}), or none" if meant in "\"'" else f"write {meant}"


def odd_characters_note(text: str) -> str:
    """Return what a message adds about a text with such a character; empty for other texts."""
    found = _ODD.search(text)
    return "" if found is None else f"; it holds {character_name(found[0])}: {instead(found[0])}"
