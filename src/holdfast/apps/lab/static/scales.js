// Scales and ticks: from numbers to positions, and round numbers in between.

export function linear([low, high], [start, end]) {
  const span = high - low || 1;
  const scale = (value) => start + ((value - low) / span) * (end - start);
  scale.invert = (position) => low + ((position - start) / (end - start)) * span;
  scale.ticks = (count = 5) => roundSteps(low, high, count);
  scale.range = [start, end];
  return scale;
}

export function logarithmic([low, high], [start, end]) {
  const inner = linear([Math.log10(low), Math.log10(high)], [start, end]);
  const scale = (value) => inner(Math.log10(Math.max(value, low / 1e6)));
  scale.invert = (position) => 10 ** inner.invert(position);
  scale.range = [start, end];
  scale.ticks = (count = 6) => {
    const decades = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); power <= Math.log10(high) + 1e-9; power += 1) decades.push(10 ** power);
    if (decades.length > count) return decades.filter((_, index) => index % Math.ceil(decades.length / count) === 0);
    if (decades.length > 2) return decades;
    const between = decades.concat(decades.map((value) => value / 10), decades.map((value) => value * 10));
    const all = new Set([...between, ...between.flatMap((value) => [2 * value, 5 * value])].map((value) => Number(value.toPrecision(6))));
    return [...all].filter((value) => value >= low * 0.999 && value <= high * 1.001).sort((a, b) => a - b);
  };
  return scale;
}

function roundSteps(low, high, count) {
  const raw = (high - low || 1) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= raw);
  const ticks = [];
  for (let value = Math.ceil(low / step - 1e-9) * step; value <= high + 1e-9 * step; value += step) {
    ticks.push(Number(value.toPrecision(10)));
  }
  return ticks;
}

// A number for people to read: three digits, and powers of ten where there would be many zeros.
export function written(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size < 1e-3 || size >= 1e6) {
    const [digits, power] = value.toExponential(2).split("e");
    const factor = Number(digits);
    const raised = `10${superscript(Number(power))}`;
    return factor === 1 ? raised : `${factor}·${raised}`;
  }
  if (Number.isInteger(value)) return value.toLocaleString("en-GB").replaceAll(",", "\u202f");
  return String(Number(value.toPrecision(3)));
}

function superscript(power) {
  return String(power).replace(/[-0-9]/g, (digit) => (digit === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[Number(digit)]));
}
