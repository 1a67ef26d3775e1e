"""How long a person waits, in a real browser: from the command to a usable page, and from a slider to new curves."""

import statistics
import sys
import time

from playwright.sync_api import sync_playwright

from apps.lab.serving import FLAGS, chromium, server

MOVES = 50
# The time from the move to the frame in which the new curves are on the screen.
MOVE = """async (position) => {
  const slider = document.getElementById("input-heterogeneity");
  const begin = performance.now();
  const painted = new Promise((resolve) => {
    const listen = (event) => {
      if (!event.detail.parts.includes("trajectories")) return;
      document.removeEventListener("drawn", listen);
      requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - begin)));
    };
    document.addEventListener("drawn", listen);
  });
  slider.value = String(position);
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return await painted;
}"""


def main() -> None:
    """Print both; exit code 1 if the median is not below 300 ms or the page not usable within 3 s."""
    path = chromium()
    if path is None:
        sys.exit("no Chromium on this machine (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page()
        begin = time.monotonic()
        with server() as (address, _):
            page.goto(address)
            page.get_by_label("Heterogeneity M").wait_for()
            usable = time.monotonic() - begin
            page.locator("#summary:not(:empty)").wait_for(timeout=120_000)
            warm = time.monotonic() - begin
            times = []
            for number in range(MOVES):
                times.append(page.evaluate(MOVE, 4 + 0.1 * number))
                page.wait_for_timeout(100)
        browser.close()
    median = statistics.median(times)
    print(f"usable {usable:.1f} s after the command, first curves after {warm:.1f} s")
    print(f"slider to new curves: median of {MOVES} {median:.0f} ms, from {min(times):.0f} to {max(times):.0f} ms")
    sys.exit(median >= 300 or usable >= 3)


if __name__ == "__main__":
    main()
