"""A CSV file of made-up subscribers with the flaws that real ones have. Pure but for writing the file."""

import csv
import random
from dataclasses import dataclass
from pathlib import Path

_FIRST = ("Ann", "Zoë", "Jean-Luc", "Bo", "Mary Jane", "Łukasz", "Nguyễn", "Søren", "Chiara", "Yusuf", "Aoife", "Íñigo")
_LAST = ("Lee", "Østergård", "Okafor", "Müller", "O'Neill", "García", "Nowak", "Haddad", "Smith, Jr.", "Tanaka")
_CITIES = ("Zürich", "Cork", "Kraków", "Porto", "Málaga", "Gdańsk", "Lyon", "Aarhus")
_DOMAINS = ("example.com", "example.net", "example.org")
_BROKEN = (
    "no-at-sign.example.com",
    "two@@example.com",
    "space in@example.com",
    "ends.with.dot.@example.com",
    "nobody@",
    "@example.org",
    "brackets<in>@example.net",
    "n/a",
)


@dataclass(frozen=True)
class Sample:
    """What was written: `people` distinct good addresses, and the flaws."""

    path: Path
    people: int
    repeated: int
    broken: int
    blank: int
    nameless: int
    cityless: int


def write_sample(path: Path, *, people: int, seed: int = 1) -> Sample:
    """Writes the file: with a byte order mark, repeated people in other case, bad addresses, blank lines and gaps."""
    dice = random.Random(seed)
    rows = [_person(dice, number) for number in range(people)]
    nameless = dice.sample(rows, people // 50)
    for row in nameless:
        row[1] = ""
    # The campaign uses the city without a fallback: these few fail, alone and with the reason.
    cityless = dice.sample(rows, min(3, people // 50))
    for row in cityless:
        row[3] = " "
    repeats = [_repeated(dice, row) for row in dice.sample(rows, people // 40)]
    broken = [[address, "Somebody", "Else", "Lyon"] for address in _BROKEN]
    blank = max(1, people // 200)
    lines = [*rows, *repeats, *broken, *([] for _ in range(blank))]
    dice.shuffle(lines)
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["E-Mail", "First name", "Last name", "City"])
        for line in lines:
            if line:
                writer.writerow(line)
            else:
                file.write("\r\n")
    return Sample(
        path=path,
        people=people,
        repeated=len(repeats),
        broken=len(broken),
        blank=blank,
        nameless=len(nameless),
        cityless=len(cityless),
    )


def _person(dice: random.Random, number: int) -> list[str]:
    first, last = dice.choice(_FIRST), dice.choice(_LAST)
    return [f"{_ascii(first)}.{number:05d}@{dice.choice(_DOMAINS)}", first, last, dice.choice(_CITIES)]


def _repeated(dice: random.Random, row: list[str]) -> list[str]:
    email = dice.choice((row[0].upper(), row[0].title(), f"  {row[0]} ", f"\u00a0{row[0]}"))
    return [email, *row[1:]]


def _ascii(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isascii() and letter.isalpha())
