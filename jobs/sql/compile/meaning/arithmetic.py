"""What sums, products, quotients and means of another dialect are in Spark. Pure."""

from sqlglot import exp

from lakewarden.jobs.sql.compile.meaning.averages import mean_in_spark, refuse_own_digits
from lakewarden.jobs.sql.compile.meaning.comparisons import is_real, refuse_real_beside_others
from lakewarden.jobs.sql.compile.meaning.dates import is_shift, shifted
from lakewarden.jobs.sql.compile.meaning.functions import Notes
from lakewarden.jobs.sql.compile.meaning.integers import in_its_bits, promoted, totalled
from lakewarden.jobs.sql.compile.meaning.quotients import quotient
from lakewarden.jobs.sql.compile.meaning.storing import SPARKS_WORDS
from lakewarden.jobs.sql.compile.places import wrong_in
from lakewarden.jobs.sql.compile.type_families import NUMBERS, Family, family_of
from lakewarden.jobs.sql.compile.values import Dialect

__all__ = ["arithmetic", "counted", "division", "mean", "summed"]


def arithmetic(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """Sums, differences and products: of numbers, and of texts where the dialect adds those, too."""
    if is_shift(node):
        return shifted(node, dialect)
    parts = [node.this] if isinstance(node, exp.Unary | exp.Func) else [node.this, node.expression]
    odd = next((part for part in parts if family_of(part) not in NUMBERS), None)
    refuse_real_beside_others(parts, node, dialect)
    refuse_own_digits(parts)
    if dialect is Dialect.TSQL and isinstance(node, exp.Add) and _are_texts(parts):
        return exp.DPipe(this=node.this.copy(), expression=node.expression.copy())
    if odd is not None:
        raise wrong_in(odd, "Only numbers are added, subtracted and multiplied here.", hint=SPARKS_WORDS)
    return promoted(node, dialect)


def summed(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """SUM, in as many bits as the dialect has for it."""
    if dialect is Dialect.POSTGRES and is_real(node.this):
        raise wrong_in(
            node, "postgres sums up REAL in 32 bits, Spark in 64.", hint="Cast it to DOUBLE PRECISION."
        )
    return totalled(arithmetic(node, dialect, notes), dialect)


def counted(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """COUNT, in as many bits as the dialect has for it."""
    return totalled(node, dialect)


def mean(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """AVG, where it has its dialect's digits."""
    found = None if isinstance(node.parent, exp.Window) else mean_in_spark(node, dialect)
    if found is None:
        raise wrong_in(
            node, f"AVG of this gives other digits in {dialect} than in Spark.",
            hint=f"Divide SUM by COUNT, or cast to DOUBLE PRECISION. {SPARKS_WORDS}",
        )  # fmt: skip
    return found


def _are_texts(parts: list[exp.Expr]) -> bool:
    kinds = {family_of(part) for part in parts}
    return Family.TEXT in kinds and kinds <= {Family.TEXT, Family.NULL}


def division(node: exp.Expr, dialect: Dialect, notes: Notes) -> exp.Expr:
    """A quotient or a remainder, where its digits and its zero are those of the dialect."""
    arithmetic(node, dialect, notes)
    families = {family_of(node.this), family_of(node.expression)}
    kinds = families - {Family.NULL}
    if dialect is Dialect.MYSQL and not isinstance(node, exp.Div):
        if not _is_other_than_zero(node.expression) or not kinds <= {Family.INTEGER}:
            raise wrong_in(node, "mysql divides by zero to NULL, Spark does not.", hint=SPARKS_WORDS)
        return node
    if dialect is Dialect.MYSQL and not _is_other_than_zero(node.expression):
        notes["To divide by zero is an error here, where mysql may find NULL."] = None
    if kinds <= {Family.INTEGER} and not isinstance(node, exp.Mod) and dialect is not Dialect.MYSQL:
        whole = exp.IntDiv(this=node.this.copy(), expression=node.expression.copy())
        return in_its_bits(whole, node, dialect)
    if isinstance(node, exp.Div):
        return node if Family.FLOAT in kinds or Family.NULL in families else quotient(node, dialect)
    if Family.FLOAT not in kinds:
        return node
    raise wrong_in(node, "A remainder of such numbers may be another one in Spark.", hint=SPARKS_WORDS)


def _is_other_than_zero(node: exp.Expr) -> bool:
    """Whether it is a whole number that is written, and not zero."""
    number = node.this if isinstance(node, exp.Neg) else node
    return isinstance(number, exp.Literal) and number.is_int and int(number.name) != 0
