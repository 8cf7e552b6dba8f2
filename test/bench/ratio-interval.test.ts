import { expect, test } from "vitest";
import { meanRatioInterval } from "../../bench/ratio-interval.ts";

test("the interval is Student's t on the logarithms of the ratios", () => {
  // Logarithms 0, 0.1 and 0.2: mean 0.1, standard error 0.1 / √3, t = 4.303 with two degrees of freedom.
  const { low, high } = meanRatioInterval([1, Math.exp(0.1), Math.exp(0.2)]);
  expect(Math.log(low)).toBeCloseTo(0.1 - (4.303 * 0.1) / Math.sqrt(3), 6);
  expect(Math.log(high)).toBeCloseTo(0.1 + (4.303 * 0.1) / Math.sqrt(3), 6);
});

test("swapping the two versions inverts the interval", () => {
  const ratios = [0.98, 1.04, 1.01, 0.97, 1.02];
  const { low, high } = meanRatioInterval(ratios);
  const swapped = meanRatioInterval(ratios.map((ratio) => 1 / ratio));
  expect(swapped.low).toBeCloseTo(1 / high, 10);
  expect(swapped.high).toBeCloseTo(1 / low, 10);
});

test("the interval covers the true ratio in about 95 of 100 experiments", () => {
  let state = 1;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const normal = () => Math.sqrt(-2 * Math.log(random())) * Math.cos(2 * Math.PI * random());
  const trueRatio = 1.03;
  const covers = (rounds: number) => {
    const { low, high } = meanRatioInterval(Array.from({ length: rounds }, () => trueRatio * Math.exp(0.05 * normal())));
    return low <= trueRatio && trueRatio <= high;
  };
  for (const rounds of [3, 7, 25]) {
    const covered = Array.from({ length: 4_000 }, () => covers(rounds)).filter(Boolean).length / 4_000;
    expect(covered, `${rounds} rounds`).toBeGreaterThan(0.94);
    expect(covered, `${rounds} rounds`).toBeLessThan(0.96);
  }
});

test("equal ratios have an interval of one point, a single ratio an unlimited one", () => {
  const equal = meanRatioInterval([0.5, 0.5, 0.5]);
  expect(equal.low).toBeCloseTo(0.5, 10);
  expect(equal.high).toBeCloseTo(0.5, 10);
  expect(meanRatioInterval([1.2])).toEqual({ low: 0, high: Infinity });
});
