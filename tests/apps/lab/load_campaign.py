"""Many people move sliders at once, on the real server.

`python -m apps.lab.load_campaign 50 60` lets 50 users move sliders for 60 seconds and prints what they saw. Each result
is compared with what the library computes for the settings that this user sent, so a result that got mixed up is found.
"""

import asyncio
import json
import random
import secrets
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from itertools import product

import httpx2
import numpy as np

from apps.lab.serving import memory, server
from holdfast.apps.lab.server import encoded
from holdfast.apps.lab.view import Context
from holdfast.apps.lab.views.oscillation import VIEW, OscillationSettings

# What the sliders are moved between: few enough for all results to be known beforehand.
HETEROGENEITIES, STEP_SIZES, SEEDS = (3.0, 5.0, 7.0, 9.0), (0.04, 0.06), (0, 1)
# Seconds between two moves of a slider, and the share of them after which a person moves on without waiting.
PAUSE, IMPATIENT = 0.2, 0.3


@dataclass
class Tally:
    """What all users saw."""

    outcomes: Counter = field(default_factory=Counter)
    mixed: int = 0
    seconds: list[float] = field(default_factory=list)
    bytes_at_start: int = 0
    bytes_at_most: int = 0


def known_results() -> dict[tuple, dict]:
    """The result of every setting that is sent, as the browser would see it."""
    silent = lambda done, total: None  # noqa: E731
    known = {}
    for heterogeneity, step_size, seed in product(HETEROGENEITIES, STEP_SIZES, SEEDS):
        parts: dict = {}
        settings = OscillationSettings(heterogeneity=heterogeneity, step_size=step_size, seed=seed)
        VIEW.compute(settings, Context(parts.__setitem__, silent, lambda number: None))
        known[heterogeneity, step_size, seed] = json.loads(encoded(parts["trajectories"]))
    return known


async def move_sliders(client: httpx2.AsyncClient, known: dict, tally: Tally, end: float, seed: int) -> None:
    """One user, until the end."""
    chance = random.Random(seed)
    headers = {"x-tab": secrets.token_hex(16)}
    while time.monotonic() < end:
        chosen = chance.choice(list(known))
        sent = dict(zip(("heterogeneity", "step_size", "seed"), chosen, strict=True))
        begin, patience = time.monotonic(), chance.uniform(0, 0.5) if chance.random() < IMPATIENT else 60.0
        try:
            async with asyncio.timeout(patience):
                outcome, found = await ask(client, headers, sent)
        except TimeoutError:
            tally.outcomes["left before the end"] += 1
            continue
        tally.outcomes[outcome] += 1
        if found is not None:
            tally.seconds.append(time.monotonic() - begin)
            tally.mixed += not same(found, known[chosen])
        await asyncio.sleep(chance.uniform(0, 2 * PAUSE))


async def ask(client: httpx2.AsyncClient, headers: dict, sent: dict) -> tuple[str, dict | None]:
    """How a computation ended, and its curves."""
    curves = None
    async with client.stream("POST", "/api/views/oscillation", json=sent, headers=headers) as answer:
        if answer.status_code != 200:
            await answer.aread()
            return f"status {answer.status_code}", None
        last = {"event": "nothing"}
        async for line in answer.aiter_lines():
            last = json.loads(line)
            curves = last.get("data", {}).get("trajectories", curves) if last["event"] == "part" else curves
    return last["event"], curves if last["event"] == "done" else None


def same(found: dict, expected: dict) -> bool:
    """Equal to the digits that are sent; sums over runs may be rounded in another order."""
    pairs = [(found[m][s]["median"], expected[m][s]["median"]) for m in expected for s in ("invariant", "spurious")]
    return all(np.allclose(left, right, rtol=1e-4, atol=0) for left, right in pairs)


async def campaign(users: int, seconds: float) -> Tally:
    """Let them all begin, and watch the memory of the server."""
    known, tally = known_results(), Tally()
    with server() as (address, process):
        limits = httpx2.Limits(max_connections=2 * users)
        async with httpx2.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
            await ask(client, {"x-tab": "0" * 32}, {})  # the programs are compiled, as after the warm-up
            tally.bytes_at_start = memory(process)
            end = time.monotonic() + seconds
            moving = [
                asyncio.create_task(move_sliders(client, known, tally, end, seed=number)) for number in range(users)
            ]
            while not all(each.done() for each in moving):
                await asyncio.sleep(0.5)
                tally.bytes_at_most = max(tally.bytes_at_most, memory(process))
            await asyncio.gather(*moving)
            alive, _ = await ask(client, {"x-tab": "0" * 32}, {})
            assert alive == "done", "the server does not answer any more"
    return tally


def main() -> None:
    """Print what was seen; exit code 1 if anything went wrong."""
    users, seconds = (int(word) for word in (sys.argv[1:] + ["50", "60"][len(sys.argv) - 1 :]))
    tally = asyncio.run(campaign(users, seconds))
    waited = np.quantile(tally.seconds, [0.5, 0.95])
    print(f"{users} users, {seconds} s: {dict(tally.outcomes)}, {tally.mixed} results mixed up")
    print(f"seconds to a result: median {waited[0]:.2f}, 95 % {waited[1]:.2f}")
    print(f"memory: {tally.bytes_at_start / 2**20:.0f} MiB at the start, {tally.bytes_at_most / 2**20:.0f} at most")
    wrong = set(tally.outcomes) - {"done", "stopped", "left before the end"}
    sys.exit(bool(wrong or tally.mixed))


if __name__ == "__main__":
    main()
