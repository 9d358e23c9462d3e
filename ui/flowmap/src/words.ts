// Numbers and sentences as people read them.

/** People: whole from 10 on, one decimal below, more for very small ones. */
export function people(number: number, sign = false): string {
  const size = Math.abs(number);
  const digits = size >= 9.95 || size === 0 ? 0 : size >= 0.095 ? 1 : 3;
  const text = size.toLocaleString("en-GB", {
    minimumFractionDigits: digits, maximumFractionDigits: digits,
  });
  return `${number < 0 ? "−" : sign && number > 0 ? "+" : ""}${text}`;
}

export function percent(part: number, whole: number): string {
  return whole > 0 ? `${Math.round((100 * part) / whole)} %` : "0 %";
}

export function arrows(n: number): string {
  return n === 1 ? "1 arrow" : `${n.toLocaleString("en-GB")} arrows`;
}

/** A round number at or below a positive one: 1, 2 or 5 times a power of ten. */
export function roundDown(number: number): number {
  const power = 10 ** Math.floor(Math.log10(number));
  return [5, 2, 1].map((step) => step * power).find((round) => round <= number * 1.0000001) ?? power;
}
