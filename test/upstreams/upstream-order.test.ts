import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { UpstreamSettings } from "../../src/domain/model.ts";
import { drawByKey, orderOf } from "../../src/upstreams/runner/runner.ts";

const upstreamOf = (n: number, weight?: number): UpstreamSettings => ({
  kind: "openai",
  baseUrl: `https://${n}.example/v1`,
  apiKeyEnv: undefined,
  model: "m",
  timeoutMs: 60_000,
  weight,
});
const weights = fc.array(fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }), { minLength: 1, maxLength: 8 });
const KEYS = Array.from({ length: 2_000 }, (_, i) => `key ${i}`);
const order = (upstreams: readonly UpstreamSettings[], key: string) => orderOf(upstreams, drawByKey("acct_1", key));

describe("the order of upstreams", () => {
  test("has each upstream once: those with a weight, then the others in the order of the list", () => {
    fc.assert(
      fc.property(weights, fc.string(), (given, key) => {
        const upstreams = given.map((weight, n) => upstreamOf(n, weight));
        const ordered = order(upstreams, key);
        expect(new Set(ordered)).toEqual(new Set(upstreams));
        expect(ordered).toHaveLength(upstreams.length);
        const isWeighted = ({ weight }: UpstreamSettings) => weight !== undefined;
        const others = upstreams.filter((upstream) => !isWeighted(upstream));
        expect(ordered.slice(upstreams.length - others.length)).toEqual(others);
      }),
    );
  });

  test("is the same for the same account and key, however the list is sorted and whatever the timeouts", () => {
    fc.assert(
      fc.property(weights, fc.string(), (given, key) => {
        const upstreams = given.map((weight = 1, n) => upstreamOf(n, weight));
        const urls = (list: readonly UpstreamSettings[]) =>
          order(list, key).map((upstream) => "baseUrl" in upstream && upstream.baseUrl);
        expect(urls(upstreams.toReversed())).toEqual(urls(upstreams));
        expect(urls(upstreams.map((upstream) => ({ ...upstream, timeoutMs: 1_000 })))).toEqual(urls(upstreams));
      }),
    );
  });

  test("gives each upstream its share of the calls, by key or at random", () => {
    const shares = [1, 2, 5];
    const upstreams = shares.map((weight, n) => upstreamOf(n, weight));
    // A fixed sequence of random numbers, so that the test has one outcome.
    let state = 1;
    const random = () => {
      state = (state * 48_271) % 2_147_483_647;
      return state / 2_147_483_647;
    };
    for (const choose of [(key: string) => order(upstreams, key), () => orderOf(upstreams, random)]) {
      const counts = upstreams.map(() => 0);
      for (const key of KEYS) {
        const first = upstreams.indexOf(choose(key)[0] as UpstreamSettings);
        counts[first] = (counts[first] ?? 0) + 1;
      }
      for (const [n, share] of shares.entries()) {
        // Four standard deviations are less than 90 of 2,000 calls.
        expect(Math.abs((counts[n] ?? 0) - (KEYS.length * share) / 8)).toBeLessThan(90);
      }
    }
  });

  test("accounts with the same keys have different orders", () => {
    const upstreams = [upstreamOf(0, 1), upstreamOf(1, 1)];
    const firsts = (account: string) => KEYS.map((key) => orderOf(upstreams, drawByKey(account, key))[0]);
    const [one, other] = [firsts("acct_1"), firsts("acct_2")];
    const same = one.filter((first, at) => first === other[at]).length;
    expect(Math.abs(same - KEYS.length / 2)).toBeLessThan(90);
  });

  test("a raised weight moves calls only to its upstream, and a removed upstream moves only its calls", () => {
    const upstreams = [upstreamOf(0, 2), upstreamOf(1, 3), upstreamOf(2, 4)];
    const raised = [upstreamOf(0, 2), upstreamOf(1, 6), upstreamOf(2, 4)];
    const urlOf = (upstream: UpstreamSettings | undefined) => (upstream && "baseUrl" in upstream ? upstream.baseUrl : "");
    let moved = 0;
    for (const key of KEYS) {
      const before = order(upstreams, key);
      const after = urlOf(order(raised, key)[0]);
      if (after !== urlOf(before[0])) {
        moved++;
        expect(after).toBe("https://1.example/v1");
      }
      // The call goes where it would have gone after a failure of the first upstream.
      const [first, second] = before;
      expect(
        order(
          upstreams.filter((upstream) => upstream !== first),
          key,
        )[0],
      ).toBe(second);
    }
    // From 3/9 to 6/12 of the calls.
    expect(Math.abs(moved - KEYS.length / 6)).toBeLessThan(90);
  });
});
