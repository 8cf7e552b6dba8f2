import { createHash } from "node:crypto";
import type { UpstreamSettings } from "../../domain/model.ts";

/** A number above 0 and at most 1 for each upstream. */
type Draw = (upstream: UpstreamSettings) => number;

/**
 * The upstreams with a weight in a drawn order, then the others in theirs. Each weighted upstream is first with a
 * probability of its share of the weights. The same draws give the same order, and a changed weight moves only
 * calls from or to its upstream (weighted rendezvous hashing).
 */
export function orderOf(upstreams: readonly UpstreamSettings[], draw: Draw): readonly UpstreamSettings[] {
  const weighted: { upstream: UpstreamSettings; rank: number }[] = [];
  const others: UpstreamSettings[] = [];
  for (const upstream of upstreams) {
    const { weight } = upstream;
    if (weight === undefined) others.push(upstream);
    else weighted.push({ upstream, rank: -Math.log(draw(upstream)) / weight });
  }
  weighted.sort((one, other) => one.rank - other.rank);
  return [...weighted.map(({ upstream }) => upstream), ...others];
}

/** The same numbers on every server and after every restart, so that a retry uses the same upstream. */
export function drawByKey(accountId: string, idempotencyKey: string): Draw {
  return (upstream) => {
    const hash = createHash("sha256").update(
      JSON.stringify([accountId, idempotencyKey, addressOf(upstream)]),
    );
    return (hash.digest().readUIntBE(0, 6) + 1) / 2 ** 48;
  };
}

/** What the upstream is, without settings that change how it is used. */
function addressOf(upstream: UpstreamSettings): readonly unknown[] {
  if (upstream.kind === "sandbox") return [upstream.kind, upstream.delayMs];
  return [upstream.kind, upstream.baseUrl, upstream.apiKeyEnv, upstream.model];
}
