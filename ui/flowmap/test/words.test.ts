import assert from "node:assert/strict";
import { test } from "node:test";

import { bySign, bySize, onRamp, widthPx } from "../src/colours";
import { people, percent, roundDown } from "../src/words";

test("people are written with as many figures as their size needs", () => {
  assert.deepEqual([0, 0.004, 0.5, 9.94, 9.96, 1234.5, -3].map((n) => people(n)),
    ["0", "0.004", "0.5", "9.9", "10", "1,235", "−3.0"]);
  assert.equal(people(3, true), "+3.0");
});

test("shares and round numbers", () => {
  assert.deepEqual([percent(1, 3), percent(1, 0)], ["33 %", "0 %"]);
  assert.deepEqual([0.7, 1, 19, 20, 49, 51, 999].map(roundDown), [0.5, 1, 10, 20, 20, 50, 500]);
});

test("colours run along the ramp by the root of the share", () => {
  const ramp: [number, number, number][] = [[0, 0, 0], [100, 100, 100], [200, 200, 200]];
  assert.deepEqual(onRamp(ramp, 0.25), [50, 50, 50]);
  assert.deepEqual(bySize(ramp, 25, 100), [100, 100, 100]);
  assert.deepEqual([bySign(ramp, -100, 100)[0], bySign(ramp, 0, 100)[0], bySign(ramp, 25, 100)[0]],
    [0, 100, 150]);
});

test("widths are proportional to people, but never too thin to see", () => {
  assert.equal(widthPx(100, 100), 2 * widthPx(50, 100));
  assert.equal(widthPx(0.01, 100), widthPx(1, 100));
  assert.equal(widthPx(500, 100), widthPx(100, 100));
});
