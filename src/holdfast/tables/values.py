"""What the cells of a column mean: numbers, dates or text, in the same way for every file format."""

import re
from typing import Any

import numpy as np
import pandas as pd

# Groups of three digits with one separator throughout: 1,234,567.8 or, with a decimal comma, 1.234.567,8.
_GROUPED = {
    ".": re.compile(r"[+-]?\d{1,3}([, '\u00a0\u202f\u2019])\d{3}(?:\1\d{3})*(?:\.\d+)?"),
    ",": re.compile(r"[+-]?\d{1,3}([. '\u00a0\u202f\u2019])\d{3}(?:\1\d{3})*(?:,\d+)?"),
}
_PLAIN = {
    ".": re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE),
    ",": re.compile(r"[+-]?(?:\d+,?\d*|,\d+)(?:[eE][+-]?\d+)?|[+-]?inf(?:inity)?", re.IGNORECASE),
}
_SEPARATORS = {".": ", '\u00a0\u202f\u2019", ",": ". '\u00a0\u202f\u2019"}
# What dates look like -> how pandas calls it.
_DATES = {
    re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?)?"): "ISO8601",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4}"): "%d.%m.%Y",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}"): "%d.%m.%Y %H:%M",
    re.compile(r"\d{1,2}\.\d{1,2}\.\d{4} \d{1,2}:\d{2}:\d{2}"): "%d.%m.%Y %H:%M:%S",
}
# 1.0 and -20.00, but not 01.0
_WHOLE = {sign: re.compile(rf"([+-]?(?:0|[1-9]\d*)){re.escape(sign)}0*") for sign in ".,"}
_TRUTH = {"true": "True", "false": "False"}
DAY = np.timedelta64(1, "D")


def is_text(values: pd.Series) -> bool:
    """Whether a column was read as text (or as truth values, which count as text)."""
    return not (pd.api.types.is_numeric_dtype(values) or is_date(values)) or pd.api.types.is_bool_dtype(values)


def is_date(values: pd.Series) -> bool:
    """Whether a column was read as dates."""
    return pd.api.types.is_datetime64_any_dtype(values)


def grouped(text: str, decimal: str = ".") -> bool:
    """Whether a text is a number with thousands separators."""
    return _GROUPED[decimal].fullmatch(text) is not None


def whole_numbers(texts: pd.Series, decimal: str = ".") -> pd.Series:
    """Texts in which 1.0 is written as 1, as a column of numbers would be; 01 stays what it is.

    Example:
        >>> whole_numbers(pd.Series(["1.0", "1", "01", "2.5", None], dtype=object)).tolist()
        ['1', '1', '01', '2.5', None]
    """
    codes, different = pd.factorize(texts)
    written = [found[1] if (found := _WHOLE[decimal].fullmatch(text)) else text for text in different]
    return pd.Series(np.array([*written, None], object)[codes], index=texts.index, dtype=object)


def as_numbers(values: pd.Series, decimal: str = ".") -> np.ndarray:
    """The numbers of a column; NaN for a missing value, for text, and for numbers that are not finite.

    Example:
        >>> as_numbers(pd.Series(["1,234.5", "7", "seven", None])).tolist()
        [1234.5, 7.0, nan, nan]
        >>> as_numbers(pd.Series(["1.234,5", "7"]), decimal=",").tolist()
        [1234.5, 7.0]
    """
    if is_date(values):
        return np.full(len(values), np.nan)
    if is_text(values):
        codes, texts = pd.factorize(as_text(values))
        known = np.array([_number(text, decimal) for text in texts] + [np.nan])  # the code of a missing value is -1
        return known[codes]
    numbers = values.to_numpy(float, na_value=np.nan)
    if not np.isfinite(numbers).all():
        numbers = np.where(np.isfinite(numbers), numbers, np.nan)
    return numbers


def _number(text: str, decimal: str) -> float:
    text = text.strip()
    if _GROUPED[decimal].fullmatch(text):
        text = text.translate({ord(mark): None for mark in _SEPARATORS[decimal]})
    elif not _PLAIN[decimal].fullmatch(text):
        return np.nan
    number = float(text.replace(",", "."))
    return number if np.isfinite(number) else np.nan


def as_days(values: pd.Series) -> np.ndarray:
    """The dates of a column, in days since 1970-01-01; NaN for a missing value and for what is no date.

    Text counts as a date if it is written as 2020-01-31, with or without a time of day, or as 31.01.2020.

    Example:
        >>> as_days(pd.Series(["1970-01-02", "1970-01-02 12:00", "03.01.1970", "soon"])).tolist()
        [1.0, 1.5, 2.0, nan]
    """
    dates = as_dates(values)
    days = (dates - np.datetime64(0, "us")) / DAY
    return np.where(np.isnat(dates), np.nan, days)


def as_dates(values: pd.Series) -> np.ndarray:
    """The dates of a column as datetime64, in UTC; NaT for a missing value and for what is no date.

    Example:
        >>> as_dates(pd.Series(["2020-01-31", "31.1.2020 14:05", None])).astype("datetime64[m]").astype(str).tolist()
        ['2020-01-31T00:00', '2020-01-31T14:05', 'NaT']
    """
    if is_date(values):
        return _plain_dates(values)
    if not is_text(values):
        return np.full(len(values), np.datetime64("NaT", "us"))
    codes, texts = pd.factorize(as_text(values))
    known = pd.Series(texts, dtype=object).astype(str).str.strip() if len(texts) else pd.Series(texts, dtype=object)
    dates = np.full(len(known) + 1, np.datetime64("NaT", "us"))  # the last one for the code -1 of a missing value
    for pattern, form in _DATES.items():
        match = np.array([pattern.fullmatch(text) is not None for text in known], bool)
        if match.any():
            parsed = pd.to_datetime(known[match], format=form, utc=True, errors="coerce")
            dates[:-1][match] = _plain_dates(parsed)
    return dates[codes]


def _plain_dates(values: pd.Series) -> np.ndarray:
    zoned: Any = values.dt
    plain = zoned.tz_convert("UTC").dt.tz_localize(None) if zoned.tz is not None else values
    return plain.to_numpy("datetime64[us]")


def as_text(values: pd.Series) -> pd.Series:
    """The values of a column as text, None where missing; truth values are True and False, however they are written.

    Example:
        >>> as_text(pd.Series([1.0, 2.5, None])).tolist(), as_text(pd.Series(["TRUE", "x"])).tolist()
        (['1', '2.5', None], ['True', 'x'])
    """
    missing = values.isna().to_numpy()
    if pd.api.types.is_float_dtype(values):  # whole numbers become 1.0 in pandas when a value is missing
        texts = np.array(
            [f"{number:.0f}" if number.is_integer() else repr(number) for number in values.tolist()], object
        )
    elif is_date(values):
        texts = np.array([str(value) for value in values], object)
    else:
        texts = values.astype(object).to_numpy()
        if pd.api.types.infer_dtype(texts, skipna=True) not in ("string", "empty"):
            texts = np.array([str(text) for text in texts], object)
        codes, different = pd.factorize(texts)
        words = np.array(
            [_TRUTH.get(text.lower(), text) if isinstance(text, str) else text for text in different], object
        )
        texts = words[codes] if len(words) else texts
    texts = texts.copy()
    texts[missing] = None
    return pd.Series(texts, index=values.index, dtype=object)
