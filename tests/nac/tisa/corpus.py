# ruff: noqa: RUF001 - texts in many scripts
"""Texts: a small corpus in many scripts to train on, and strings to compare on."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from tests.effort import PROFILE, commit_number

Item = TypeVar("Item")


def sample(items: Sequence[Item], share: int) -> Sequence[Item]:
    """Every so many of them in the tier of CI, others with every commit; all in the others."""
    return items[commit_number() % share :: share] if PROFILE == "fast" else items


CORPUS = (
    "The quick brown fox jumps over the lazy dog. It wasn't the dog's fault, they'll say!",
    "Pack my box with five dozen liquor jugs; 12345 of them, at $9.99 each (or 7% less).",
    "Falsches Üben von Xylophonmusik quält jeden größeren Zwerg. Straße, Fluß, ÄÖÜ.",
    "Portez ce vieux whisky au juge blond qui fume; l'été, où ça? Noël, cœur, naïve.",
    "El pingüino Wenceslao hizo kilómetros bajo exhaustiva lluvia y frío, ¿sí? ¡Añoraba!",
    "Съешь же ещё этих мягких французских булок, да выпей чаю. Ёлка, Йод.",
    "Ξεσκεπάζω την ψυχοφθόρα βδελυγμία. ΟΔΥΣΣΕΥΣ, σοφός, Σίσυφος.",
    "דג סקרן שט בים מאוכזב ולפתע מצא חברה. שָׁלוֹם עֲלֵיכֶם",
    "نص حكيم له سر قاطع وذو شأن عظيم مكتوب على ثوب أخضر. العَرَبِيَّة ١٢٣",
    "ऋषियों को सताने वाले दुष्ट राक्षसों के राजा रावण का सर्वनाश। हिन्दी १२३",
    "いろはにほへと ちりぬるを。東京タワーは高さ333メートルです。ガギグゲゴ",
    "天地玄黃，宇宙洪荒。日月盈昃，辰宿列張。中文分词测试，你好世界！",
    "키스의 고유조건은 입술끼리 만나야 하고 특별한 기술은 필요치 않다. 한글",
    "เป็นมนุษย์สุดประเสริฐเลิศคุณค่า กว่าบรรดาฝูงสัตว์เดรัจฉาน ๑๒๓",
    "Pijamalı hasta yağız şoföre çabucak güvendi. İstanbul IĞDIR ılık",
    "Muốn biết phải hỏi, muốn giỏi phải học. Tiếng Việt, ngữ pháp.",
    "def f(x):\n    return x ** 2 + 1  # comment\n\n\tprint('a_b', [1, 2], {\"k\": 3.5e-10})\r\n",
    "https://example.org/path?q=a+b&c=%20 user@example.org #tag @name C++ C# a/b a\\b",
    "😀 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 emoji ☕️ ❤️ 🇩🇪 ①②③ ½ ² ﬁ ﬂ ﬀ Ａｂｃ １２３ ㎏ ℃",
)
# Real text in scripts that no vocabulary here was trained on.
OTHER_SCRIPTS = (
    "Բոլոր մարդիկ ծնվում են ազատ ու հավասար։", "ყველა ადამიანი იბადება თავისუფალი და თანასწორი",
    "সমস্ত মানুষ স্বাধীনভাবে জন্মগ্রহণ করে। ১২৩", "மனிதப் பிறவியினர் சகலரும் சுதந்திரமாகவே பிறக்கின்றனர்",
    "ప్రతిపత్తిస్వత్వముల విషయమున మానవులెల్లరును", "પ્રતિષ્ઠા અને અધિકારોની દૃષ્ટિએ સર્વ માનવો",
    "ಎಲ್ಲಾ ಮಾನವರೂ ಸ್ವತಂತ್ರರಾಗಿಯೇ ಜನಿಸಿದ್ದಾರೆ", "മനുഷ്യരെല്ലാവരും തുല്യാവകാശങ്ങളോടും",
    "ਸਾਰਾ ਮਨੁੱਖੀ ਪਰਿਵਾਰ ਆਪਣੀ ਮਹਿਮਾ", "සියලු මනුෂ්‍යයෝ නිදහස්ව උපත ලබා ඇත", "မနုဿတိုင်းသည် တူညီလွတ်လပ်သော",
    "មនុស្សទាំងអស់កើតមកមានសេរីភាព", "ມະນຸດທຸກຄົນເກີດມາມີກຽດສັກສີ", "የሰው ልጅ ሁሉ ሲወለድ ነጻና ፩፪፫",
    "འགྲོ་བ་མིའི་རིགས་རྒྱུད་ཡོངས་ལ་", "ᠬᠦᠮᠦᠨ ᠪᠦᠷ", "ᏂᎦᏓ ᎠᏂᏴᏫ", "ߡߐ߱ ߓߍ߯ ߛߏ߬ߟߏ߬", "𐐜 𐐦𐑍𐑊𐐮𐑇 𐑄 𐑅𐐻𐐭𐐼",
)  # fmt: skip
_SPECIALS = (
    "[CLS]", "[SEP]", "[MASK]", "[UNK]", "<s>", "</s>", "<mask>", "<pad>", "<unk>", "<|endoftext|>",
    " <mask> ", "  [MASK]", "##ing", "\u2581", "\u2581a", "n't", "'s", "'LL", " 'S", "'\u017f",
)  # fmt: skip
_SPACES = (
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\u200b",
    "\u0085",
    "\x1c",
    "",
)
_MARKS = ("\u0301", "\u0308", "\u0327", "\u0323", "\u093c", "\u05bc", "\u3099", "\u0345", "\u20dd")
# Where tables of different ages differ: marks, digits, letters and punctuation of later versions.
_YOUNG = (
    "\U00011938", "\U00011935\U00011930", "\u07fd", "\u08ca", "\u1ac1", "\u2e52", "\U0001fae8",
    "\U00010d50", "\U00016ea0", "\U00011de3", "\U00010d6e", "\u1734", "\u1885", "\ua7cb", "\u32ff",
    "\U00010781", "\U0001e08f", "\U00011f50", "\u0cf3", "\U0002ebf0", "\U0001fbf3", "\u061d",
)  # fmt: skip


def strings(count: int, seed: int = 0) -> list[str]:
    """So many strings: pieces of the corpus, of special tokens, spaces, marks and any character."""
    draw = random.Random(seed)
    return [_string(draw) for _ in range(count)]


def _string(draw: random.Random) -> str:
    return "".join(_piece(draw) for _ in range(draw.choice((0, 1, 1, 2, 3, 5, 8, 12))))


def _piece(draw: random.Random) -> str:
    kind = draw.randrange(10)
    if kind < 4:
        line = draw.choice(CORPUS)
        start = draw.randrange(len(line))
        return line[start : start + draw.choice((1, 2, 5, 10, 30))]
    if kind == 4:
        return draw.choice(_SPECIALS)
    if kind == 5:
        return draw.choice(_SPACES) * draw.choice((1, 1, 2, 5))
    if kind == 6:
        return "".join(draw.choice(_MARKS) for _ in range(draw.randrange(1, 4)))
    if kind == 7:
        return draw.choice(_YOUNG)
    if kind == 8:
        return draw.choice("aAzZ09.,!-_'\"$\u00e9\u0130\u03a3\ufb01\uac01") * draw.choice(
            (1, 2, 7, 150)
        )
    return "".join(_any(draw) for _ in range(draw.randrange(1, 6)))


def _any(draw: random.Random) -> str:
    """Any character; most are from where characters are dense."""
    while True:
        top = draw.choice((0x80, 0x250, 0x3000, 0x10000, 0x20000, 0x110000))
        point = draw.randrange(top)
        if not 0xD800 <= point < 0xE000:
            return chr(point)
