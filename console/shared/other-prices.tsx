import type { Prices } from "../../gen/vx/v1/prices_pb.js";
import { Money } from "./money.tsx";

const NAMES = [
  ["cacheWrite", "write to the cache", "input"],
  ["cacheWrite1h", "write to the cache for an hour", "cacheWrite"],
  ["reasoning", "reasoning", "output"],
  ["image", "an image", undefined],
  ["request", "a request", undefined],
] as const;

/** The prices that differ from those of input and output. */
export function OtherPrices({ prices }: { readonly prices: Prices | undefined }) {
  const shown = NAMES.filter(([name, , usual]) => prices?.[name] !== (usual === undefined ? 0n : prices?.[usual]));
  if (shown.length === 0) return <span class="muted">–</span>;
  return (
    <>
      {shown.map(([name, text]) => (
        <div key={name} class="small">
          <Money micros={prices?.[name] ?? 0n} /> {text}
        </div>
      ))}
    </>
  );
}
