import type { ComponentChildren } from "preact";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { meterCosts, type Usage, usageOf } from "../../src/domain/price.ts";
import { Detail } from "./details.tsx";
import { Money, numberText, productText } from "./money.tsx";

const MILLIONTHS_PER_MICRO = 1_000_000n;

/** What each kind of usage of a generation costs. The costs and the rounding add up to the charge. */
export function EntryCosts({ entry }: { readonly entry: LedgerEntry }) {
  const { prices, images } = entry;
  if (!prices) return null;
  const usage = usageOfEntry(entry);
  const costs = meterCosts(prices, usage);
  const used = usage.cachedInput + usage.cacheWrite;
  const rounding = -entry.amountMicros * MILLIONTHS_PER_MICRO - sumOf(Object.values(costs));
  const saved = BigInt(used) * prices.input - costs.cachedInput - costs.cacheWrite - costs.cacheWrite1h;
  const kinds: [name: string, tokens: number, price: bigint, cost: bigint][] = [
    [used > 0 ? "Input, not cached" : "Input tokens", usage.input, prices.input, costs.input],
    ["Read from cache", usage.cachedInput, prices.cachedInput, costs.cachedInput],
    ["Written to cache", usage.cacheWrite - usage.cacheWrite1h, prices.cacheWrite, costs.cacheWrite],
    ["Written for 1 hour", usage.cacheWrite1h, prices.cacheWrite1h, costs.cacheWrite1h],
    [usage.reasoning > 0 ? "Output of the reply" : "Output tokens", usage.output, prices.output, costs.output],
    ["Reasoning tokens", usage.reasoning, prices.reasoning, costs.reasoning],
  ];
  return (
    <>
      {kinds
        .filter(([, tokens]) => tokens > 0)
        .map(([name, tokens, price, cost]) => (
          <Cost key={name} name={name} cost={cost}>
            {numberText(tokens)} at <Money micros={price} /> per million
          </Cost>
        ))}
      {images > 0n && (
        <Cost name="Images" cost={costs.image}>
          {numberText(images)} at <Money micros={prices.image} />, in addition to the tokens
        </Cost>
      )}
      {prices.request > 0n && (
        <Cost name="Request" cost={costs.request}>
          Price of each request
        </Cost>
      )}
      {rounding !== 0n && (
        <Cost name="Rounded up" cost={rounding}>
          To a multiple of <Money micros={1n} />
        </Cost>
      )}
      {saved !== 0n && (
        <Detail name="Cache">
          {saved > 0n ? "Saved" : "Added"} {productText(saved > 0n ? saved : -saved)}
          <span class="muted">, compared with the price of input</span>
        </Detail>
      )}
    </>
  );
}

type CostProps = {
  readonly name: string;
  /** In millionths of a micro. */
  readonly cost: bigint;
  readonly children: ComponentChildren;
};

function Cost({ name, cost, children }: CostProps) {
  return (
    <Detail name={name}>
      <span class="cost">
        <span class="muted">{children}</span>
        <span class="money">{productText(cost)}</span>
      </span>
    </Detail>
  );
}

function usageOfEntry(entry: LedgerEntry): Usage {
  const usage = usageOf({
    inputTokens: Number(entry.inputTokens),
    outputTokens: Number(entry.outputTokens),
    cachedInput: Number(entry.cachedInputTokens),
    cacheWrite: Number(entry.cacheWriteTokens),
    cacheWrite1h: Number(entry.cacheWrite1hTokens),
    reasoning: Number(entry.reasoningTokens),
  });
  return { ...usage, images: Number(entry.images) };
}

function sumOf(costs: readonly bigint[]): bigint {
  return costs.reduce((sum, cost) => sum + cost, 0n);
}
