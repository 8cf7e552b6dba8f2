import { type Checkout, OWN_CHECKOUT } from "./checkout.ts";
import { median } from "./load.ts";
import { meanRatioInterval } from "./ratio-interval.ts";

/** What one round of an arm measures, for example calls per second. */
export type Sample = Readonly<Record<string, number>>;

/** Programs or functions that are measured in turn, so that other load on the machine affects all of them. */
type Arms<Round> = { readonly [Name in keyof Round]: () => Promise<Round[Name]> };

/** One line of the result. Most limits are ratios of arms: an absolute value says as much about the machine. */
export type Figure<Round> = {
  readonly name: string;
  readonly unit: "/s" | "ms" | "µs" | "MiB" | "KiB" | "B" | "×" | "";
  readonly min?: number;
  readonly max?: number;
  /** The value to reach. The bench says if it is not reached, and does not fail. */
  readonly goal?: number;
  value(round: Round): number;
};

/** Measurements of the product and, in the same rounds, of the baselines it is compared with. */
export type Part<Product, Baselines = Record<never, never>> = {
  readonly rounds: number;
  /** Rounds before the measured ones, in which code is compiled and memory grows. */
  readonly warmUpRounds: number;
  open(checkout: Checkout, cleanup: AsyncDisposableStack): Promise<Arms<Product>>;
  openBaselines?(cleanup: AsyncDisposableStack): Promise<Arms<Baselines>>;
  readonly figures: readonly Figure<Product & Baselines>[];
};

/** The part needs something that this machine does not have. */
export class Unavailable extends Error {}

type Rounds = Record<string, Sample>;
export type AnyPart = Part<Rounds, Rounds>;

/** Prints the figures of the part. Returns whether all limits are kept. */
export async function measure(part: AnyPart, roundCount: number): Promise<boolean> {
  await using cleanup = new AsyncDisposableStack();
  const arms = { ...(await part.open(OWN_CHECKOUT, cleanup)), ...(await part.openBaselines?.(cleanup)) };
  const rounds: Rounds[] = [];
  for (let number = -part.warmUpRounds; number < roundCount; number++) {
    const round = await measureRound(arms);
    if (number >= 0) rounds.push(round);
  }
  return part.figures.map((figure) => print(figure, rounds.map(figure.value))).every(Boolean);
}

/** Prints the ratio of this checkout to the other one, for each arm and each measured value. */
export async function compare(part: AnyPart, other: Checkout, rounds: number): Promise<void> {
  await using cleanup = new AsyncDisposableStack();
  const [ours, theirs] = [await part.open(OWN_CHECKOUT, cleanup), await part.open(other, cleanup)];
  for (let round = 0; round < part.warmUpRounds; round++) {
    await measureRound(ours);
    await measureRound(theirs);
  }
  const pairs: { ours: Sample; theirs: Sample; arm: string }[] = [];
  for (let round = 0; round < rounds; round++) {
    for (const arm of Object.keys(ours)) pairs.push({ arm, ...(await measurePair(ours, theirs, arm, round)) });
  }
  for (const arm of Object.keys(ours)) {
    const samples = pairs.filter((pair) => pair.arm === arm);
    for (const value of Object.keys(samples[0]?.ours ?? {})) {
      const of = (side: "ours" | "theirs") => samples.map((pair) => pair[side][value] ?? Number.NaN);
      const [our, their] = [of("ours"), of("theirs")];
      printRatio(`${arm}, ${value}`, our, their);
    }
  }
}

async function measureRound(arms: Arms<Rounds>): Promise<Rounds> {
  const round: Rounds = {};
  for (const [name, measureArm] of Object.entries(arms)) round[name] = await measureArm();
  return round;
}

/** The order alternates, so that neither side is always measured after the other. */
async function measurePair(ours: Arms<Rounds>, theirs: Arms<Rounds>, arm: string, round: number) {
  const measureArm = (arms: Arms<Rounds>) => arms[arm]?.() ?? Promise.reject(new Error(`no arm ${arm}`));
  if (round % 2 === 0) return { ours: await measureArm(ours), theirs: await measureArm(theirs) };
  const first = await measureArm(theirs);
  return { ours: await measureArm(ours), theirs: first };
}

function print<Round>({ name, unit, min, max, goal }: Figure<Round>, values: readonly number[]): boolean {
  const value = median(values);
  const isKept = value >= (min ?? -Infinity) && value <= (max ?? Infinity);
  const limit = min !== undefined ? `at least ${min}` : max !== undefined ? `at most ${max}` : "";
  const isReached = goal === undefined || (max === undefined ? value >= goal : value <= goal);
  const { low, high } = meanRatioInterval(values);
  const interval = unit === "×" && values.length > 1 ? `[${low.toFixed(3)}, ${high.toFixed(3)}] ` : "";
  const aim = goal === undefined ? "" : ` [goal ${goal}${isReached ? "" : ", not reached"}]`;
  console.log(
    `  ${name.padEnd(56)} ${format(value).padStart(10)} ${unit.padEnd(4)} ${interval}${limit}${aim}${isKept ? "" : "  MISSED"}`,
  );
  return isKept;
}

const WORSE_RATIO = 1.05;

function printRatio(name: string, ours: readonly number[], theirs: readonly number[]): void {
  const ratios = ours.map((value, round) => value / (theirs[round] ?? Number.NaN));
  const ratio = median(ratios);
  const loss = name.endsWith("perSecond") ? 1 / ratio : ratio;
  const { low, high } = meanRatioInterval(ratios);
  console.log(
    `  ${name.padEnd(44)} ${format(median(ours)).padStart(10)} ${format(median(theirs)).padStart(10)} ` +
      `${ratio.toFixed(2).padStart(6)} × [${low.toFixed(3)}, ${high.toFixed(3)}]${loss > WORSE_RATIO ? "  worse" : ""}`,
  );
}

function format(value: number): string {
  const digits = value < 100 ? 2 : 0;
  return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}
