"""What the cells of a column mean: numbers, dates or text, in the same way for every file format."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

# Groups of three digits with one separator throughout: 1,234,567.8 or, with a decimal comma, 1.234.567,8.
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}([, '\u00a0\u202f\u2019])\d{3}(?:\1\d{3})*(?:\.\d+)?"),
    ",": re.compile(r"[+-]?\d{1,3}([. '\u00a0\u202f\u2019])\d{3}(?:\1\d{3})*(?:,\d+)?"),
}
_PLAIN = {
    sign: re.compile(
        rf"[+-]?(?:\d+{re.escape(sign)}?\d*|{re.escape(sign)}\d+)(?:e[+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE
    )
    for sign in ".,"
}
_SEPARATORS = {".": ", '\u00a0\u202f\u2019", ",": ". '\u00a0\u202f\u2019"}
# A number with a currency sign before or after it: $5, -$5, 1,234.50 € or EUR 5.
_SIGNS = r"[$€£¥₹₽₺₩]|EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|kr\.?|Fr\.|zł"
_DIGITS = r"[\d.,][\d.,' \u00a0\u202f\u2019]*?"
_MONEY = re.compile(rf"([+-]?)(?:({_SIGNS})\s*([+-]?{_DIGITS})|({_DIGITS})\s*({_SIGNS}))")
# Texts that stand for no value, in small letters and without blanks.
_MISSING = re.compile(
    r"#?n/?a|n\.a\.|nan|null|#null!|nil|none|missing|notavailable|noanswer|unknown|k\.a\.?|keineangabe|unbekannt|fehlt|"
    r"#value!|#div/0!|#ref!|[-.?*\u2013\u2014]+"
)
# What dates look like -> the format that pandas reads them with.
_DATES = {
    re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"): "ISO8601",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"): "%d.%m.%Y",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}"): "%d.%m.%Y %H:%M",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}:\d{2}"): "%d.%m.%Y %H:%M:%S",
}
# 1.0 and -20.00, but not 01.0
_WHOLE = {sign: re.compile(rf"([+-]?(?:0|[1-9]\d*)){re.escape(sign)}0*") for sign in ".,"}
_TRUTH = {"true": "True", "false": "False"}


def is_number(values: pd.Series) -> bool:
    """Whether a column holds numbers by its type; truth values are text."""
    return pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)


def is_date(values: pd.Series) -> bool:
    """Whether a column holds dates by its type."""
    return pd.api.types.is_datetime64_any_dtype(values)


def as_text(values: pd.Series) -> pd.Series:
    """The cells as text, each different text once, as a category; truth values are True and False however written.

    Example:
        >>> as_text(pd.Series([1.0, 2.5, None])).tolist(), as_text(pd.Series(["TRUE", "x"])).tolist()
        (['1', '2.5', nan], ['True', 'x'])
    """
    if isinstance(values.dtype, pd.CategoricalDtype):
        codes, different = values.cat.codes.to_numpy(), values.cat.categories.to_numpy(object)
    else:
        if values.dtype == object and pd.api.types.infer_dtype(values, skipna=True) not in ("string", "empty"):
            values = values.map(str, na_action="ignore")  # 1, True and "1" are three values, also where 1 == True
        codes, found = pd.factorize(values)
        different = np.asarray(found, object)
    return coded_text(np.asarray(codes), list(different), values)


def _word(value: Any) -> str | None:
    if value is None:
        return None
    if isinstance(value, float):  # whole numbers become 1.0 in pandas when a value is missing
        return f"{value:.0f}" if value.is_integer() else repr(value)
    text = str(value)
    return _TRUTH.get(text.lower(), text) if len(text) in (4, 5) else text


def coded_text(codes: np.ndarray, words: list[Any], like: Any = None) -> pd.Series:
    """A category from the position of each cell in some values, which may repeat; -1, or a value None, is missing.

    Example:
        >>> coded_text(np.array([1, 0, 2, -1]), ["a", "b", "a"]).tolist()
        ['b', 'a', 'a', nan]
    """
    own, different = pd.factorize(np.array([*map(_word, words), None], object))  # the code -1 finds the None at the end
    if len(different) < len(words):
        codes = own[codes]
    dtype = pd.CategoricalDtype(pd.Index(different, dtype=object))
    index, name = (None, None) if like is None else (like.index, like.name)
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype, validate=False), index, name=name, copy=False)


def parsed_text(values: pd.Series, parse: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of the different texts of a column, for each cell; of a missing one it is that of None."""
    texts = as_text(values)
    return parse(np.array([*texts.cat.categories, None], object))[texts.cat.codes.to_numpy()]


def folded(text: str) -> str:
    """A text without differences of case and blanks.

    Example:
        >>> folded(" Dark  Red") == folded("dark red")
        True
    """
    return " ".join(text.split()).casefold()


def marks_missing(text: str) -> bool:
    """Whether a text is a common mark of a missing value, such as n/a, k. A., - or NULL.

    Example:
        >>> [marks_missing(text) for text in ("N/A", "k. A.", "high")]
        [True, True, False]
    """
    return _MISSING.fullmatch("".join(text.split()).lower()) is not None


def without_currency(text: str) -> tuple[str, str]:
    """A text without the currency sign of a number, and this sign; "" if it has none.

    Example:
        >>> without_currency("-$5"), without_currency("1 234,50 €"), without_currency("five $")
        (('-5', '$'), ('1 234,50', '€'), ('five $', ''))
    """
    if (found := _MONEY.fullmatch(text)) is None:
        return text, ""
    sign, before, first, second, after = found.groups()
    return sign + (first or second).strip(), before or after


def dressing(text: str, decimal: str = ".") -> str | None:
    """The currency sign of a number, "" of one with thousands separators alone; None of a plain number and of text.

    Example:
        >>> dressing("$5"), dressing("1,234"), dressing("5")
        ('$', '', None)
    """
    bare, sign = without_currency(text.strip())
    grouped = _GROUPED[decimal].fullmatch(bare) is not None
    return sign if grouped or (sign and _PLAIN[decimal].fullmatch(bare)) else None


def whole_numbers(values: pd.Series, decimal: str = ".") -> pd.Series:
    """The cells as text in which 1.0 is written as 1, as a column of numbers would be; 01 stays what it is.

    Example:
        >>> whole_numbers(pd.Series(["1.0", "1", "01", "2.5", None], dtype=object)).tolist()
        ['1', '1', '01', '2.5', nan]
    """
    texts = as_text(values)
    return coded_text(texts.cat.codes.to_numpy(), [whole_number(text, decimal) for text in texts.cat.categories], texts)


def whole_number(text: str, decimal: str = ".") -> str:
    """The text in which 1.0 is written as 1."""
    return found[1] if (found := _WHOLE[decimal].fullmatch(text)) else text


def all_numbers(values: pd.Series, decimal: str = ".") -> np.ndarray:
    """The numbers of a column, also those that are not finite; NaN for a missing value and for text."""
    if is_date(values):
        return np.full(len(values), np.nan)
    if is_number(values):
        is_float = values.dtype == np.float64
        return values.to_numpy() if is_float else values.to_numpy(float, na_value=np.nan)
    return parsed_text(values, lambda texts: np.array([_number(text, decimal) for text in texts]))


def as_numbers(values: pd.Series, decimal: str = ".") -> np.ndarray:
    """The numbers of a column; NaN for a missing value, for text, and for numbers that are not finite.

    Example:
        >>> as_numbers(pd.Series(["1,234.5", "7", "seven", None])).tolist()
        [1234.5, 7.0, nan, nan]
        >>> as_numbers(pd.Series(["1.234,5", "7"]), decimal=",").tolist()
        [1234.5, 7.0]
        >>> as_numbers(pd.Series(["1,234.50 €", "$5", "-$5"])).tolist()
        [1234.5, 5.0, -5.0]
    """
    numbers = all_numbers(values, decimal)
    known = np.isfinite(numbers)
    return numbers if known.all() else np.where(known, numbers, np.nan)


def _number(text: str | None, decimal: str) -> float:
    text = (text or "").strip()
    if not _PLAIN[decimal].fullmatch(text):
        text, _ = without_currency(text)
        if _GROUPED[decimal].fullmatch(text):
            text = text.translate({ord(mark): None for mark in _SEPARATORS[decimal]})
        elif not _PLAIN[decimal].fullmatch(text):
            return np.nan
    return float(text.replace(",", "."))


def as_days(values: pd.Series) -> np.ndarray:
    """The dates of a column, in days since 1970-01-01; NaN for a missing value and for what is no date.

    Text counts as a date if it is written as 2020-01-31, with or without a time of day, or as 31.01.2020.

    Example:
        >>> as_days(pd.Series(["1970-01-02", "1970-01-02 12:00", "03.01.1970", "soon"])).tolist()
        [1.0, 1.5, 2.0, nan]
    """
    dates = as_dates(values)
    return np.where(np.isnat(dates), np.nan, (dates - np.datetime64(0, "us")) / np.timedelta64(1, "D"))


def as_dates(values: pd.Series) -> np.ndarray:
    """The dates of a column as datetime64, in UTC; NaT for a missing value and for what is no date.

    Example:
        >>> as_dates(pd.Series(["2020-01-31", "31.1.2020 14:05", None])).astype("datetime64[m]").astype(str).tolist()
        ['2020-01-31T00:00', '2020-01-31T14:05', 'NaT']
    """
    if is_date(values):
        return _in_utc(values)
    if is_number(values):
        return np.full(len(values), np.datetime64("NaT", "us"))
    return parsed_text(values, _parsed_dates)


def _parsed_dates(texts: np.ndarray) -> np.ndarray:
    known = pd.Series([(text or "").strip() for text in texts], dtype=object)
    dates = np.full(len(known), np.datetime64("NaT", "us"))
    for pattern, form in _DATES.items():
        match = np.array([pattern.fullmatch(text) is not None for text in known], bool)
        if match.any():
            dates[match] = _in_utc(pd.to_datetime(known[match], format=form, utc=True, errors="coerce"))
    return dates


def _in_utc(values: pd.Series) -> np.ndarray:
    zoned: Any = values.dt
    plain = zoned.tz_convert("UTC").dt.tz_localize(None) if zoned.tz is not None else values
    return plain.to_numpy("datetime64[us]")
