/**
 * The 95 % confidence interval of the geometric mean of the ratios: Student's t on their logarithms. One ratio
 * says nothing about the spread, so its interval is unlimited.
 */
export function meanRatioInterval(ratios: readonly number[]): { low: number; high: number } {
  const count = ratios.length;
  if (count < 2) return { low: 0, high: Infinity };
  const logs = ratios.map(Math.log);
  const mean = sum(logs) / count;
  const variance = sum(logs.map((log) => (log - mean) ** 2)) / (count - 1);
  const margin = studentT(count - 1) * Math.sqrt(variance / count);
  return { low: Math.exp(mean - margin), high: Math.exp(mean + margin) };
}

/** The 97.5 % quantiles of Student's t with 1 to 10 degrees of freedom. */
const QUANTILES = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
const NORMAL_QUANTILE = 1.96;

/** Exact up to 10 degrees of freedom, within 0.1 % above. */
function studentT(degrees: number): number {
  return QUANTILES[degrees - 1] ?? NORMAL_QUANTILE + 2.4 / degrees + 2.8 / degrees ** 2;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
