"""EXECUTE IMMEDIATE of a plain text is the statement in it: it is read, judged and run as that. Pure."""

from typing import Final

from sqlglot import TokenType

from lakewarden.jobs.sql.token_reader import tokens_of

__all__ = ["said_immediately"]

_WORDS: Final = ("EXECUTE", "IMMEDIATE")


def said_immediately(text: str) -> str:
    """The statement inside, if all there is besides is a text in single quotes that means itself; else `text`. What
    is left (expressions, USING, INTO, escapes) is Spark's to read, and refused where it may write."""
    if "immediate" not in text.lower():
        return text
    tokens = tokens_of(text)
    if len(tokens) != len(_WORDS) + 1 or tuple(one.text.upper() for one in tokens[:2]) != _WORDS:
        return text
    said = tokens[-1]
    means_itself = text[said.start : said.end + 1] == f"'{said.text}'" and "\\" not in said.text
    return said.text if said.token_type is TokenType.STRING and means_itself else text
