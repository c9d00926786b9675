import codecs

import pytest

from hf_qualcode.corpus.reading import BinaryFileError, decode


TEXT = "def grüße():\n    return 'Привет, 世界 😀'\n"


@pytest.mark.parametrize(
    ("mark", "encoding"),
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_unicode_encodings(mark, encoding):
    assert decode(mark + TEXT.encode(encoding)) == (TEXT, encoding)


def test_python_cookie():
    text = "# -*- coding: koi8-r -*-\nx = 'Привет'\n"
    assert decode(text.encode("koi8-r"), is_python=True) == (text, "koi8-r")
    second = f"#!/usr/bin/python\n{text}"
    assert decode(second.encode("koi8-r"), is_python=True).text == second
    # Not in the third line, and not below code.
    assert decode(f"\n\n{text}".encode(), is_python=True) == (f"\n\n{text}", "utf-8")
    assert decode(f"x = 1\n{text}".encode(), is_python=True) == (f"x = 1\n{text}", "utf-8")


@pytest.mark.parametrize("cookie", ["no-such-codec", "rot13", "unicode_escape", "hex", "undefined", "utf-8", "ascii"])
def test_useless_cookies_are_passed_over(cookie):
    text = f"# coding: {cookie}\nx = '\\\\u00e4 ä'\n"
    assert decode(text.encode(), is_python=True) == (text, "utf-8")


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("cp1252", "// Größe prüfen, Übergröße ändern, natürlich öfter während für\nint x;\n" * 5),
        ("cp1251", "// Проверка размера очереди и добавление нового элемента в конец\nint x;\n" * 5),
        ("shift_jis", "// キューのサイズを確認して新しい要素を末尾に追加する\nint x;\n" * 5),
        ("gb18030", "// 检查队列的大小并将新元素添加到末尾\nint x;\n" * 5),
    ],
)
def test_legacy_encodings_are_guessed(encoding, text):
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.encoding != "utf-8"


def test_surrogates_become_what_they_stand_for():
    cesu = "x = '😀'".encode("utf-16-le").decode("utf-16-le", "surrogatepass")
    data = b"x = '\xed\xa0\xbd\xed\xb8\x80'"
    assert decode(data) == (cesu, "utf-8 (surrogates)")
    lone = decode(b"x = '\xed\xa0\x80'")
    assert lone == ("x = '\ufffd'", "utf-8 (surrogates)")
    assert decode(b"# coding: utf-7\nx = '+2AA-'\n", is_python=True).text.encode("utf-8")


def test_mostly_utf8_stays_utf8():
    decoded = decode("// äöü ÄÖÜ éèê\n".encode() + b"// \xff\n")
    assert decoded == ("// äöü ÄÖÜ éèê\n// \ufffd\n", "utf-8 (damaged)")


@pytest.mark.parametrize("data", [b"a\0b", b"\xff\xfe\0\0\0\0\0\0", b"\x7fELF\0", "x".encode("utf-16-le")])
def test_nul_means_binary(data):
    with pytest.raises(BinaryFileError):
        decode(data)


def test_every_byte_gives_text_that_utf8_can_hold():
    for size in (1, 2, 3, 4, 7):
        for first in range(1, 256):
            data = bytes((first * (position * 37 + 1)) % 255 + 1 for position in range(size))
            decode(data).text.encode("utf-8")
            decode(b"# coding: utf-16\n" + data, is_python=True).text.encode("utf-8")
