import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { capitalized } from "./capitalized.ts";
import { Detail, Details } from "./details.tsx";
import { Dialog } from "./dialog.tsx";
import { Money, numberText } from "./money.tsx";
import { longTimeText } from "./time.tsx";

/** Everything that the ledger says about one change of the balance. */
export function EntryDialog({
  entry,
  onClose,
}: {
  readonly entry: LedgerEntry;
  readonly onClose: () => void;
}) {
  return (
    <Dialog title={entry.reason || capitalized(entry.kind)} onClose={onClose}>
      <Details isInDialog>
        <Detail name="Amount">
          <Money micros={entry.amountMicros} />
        </Detail>
        <Detail name="Balance after">
          <Money micros={entry.balanceAfterMicros} />
        </Detail>
        <Detail name="Time">{entry.createdAt && longTimeText(entry.createdAt)}</Detail>
        <Detail name="Kind">{capitalized(entry.kind)}</Detail>
        <Detail name="Model">{entry.model}</Detail>
        <Detail name="End user">{entry.user}</Detail>
        {entry.kind === "generation" && <Tokens entry={entry} />}
        <Detail name="Generation id" isCode>
          {entry.generationId}
        </Detail>
        <Detail name="Request id" isCode>
          {entry.requestId}
        </Detail>
        <Detail name="Key id" isCode>
          {entry.keyId}
        </Detail>
        <Detail name="Trace id" isCode>
          {entry.traceId}
        </Detail>
        <Detail name="Entry" isCode>
          {entry.id}
        </Detail>
        <Detail name="Number">{numberText(entry.seq)}</Detail>
      </Details>
    </Dialog>
  );
}

/** The tokens of each kind with their price per million. */
function Tokens({ entry }: { readonly entry: LedgerEntry }) {
  const { prices } = entry;
  const kinds: [name: string, tokens: bigint, price: bigint | undefined][] = [
    ["Input tokens", entry.inputTokens, prices?.input],
    ["from cache", entry.cachedInputTokens, prices?.cachedInput],
    ["to cache", entry.cacheWriteTokens, prices?.cacheWrite],
    ["Output tokens", entry.outputTokens, prices?.output],
    ["reasoning", entry.reasoningTokens, prices?.reasoning],
    ["Images", entry.images, undefined],
  ];
  return kinds
    .filter(([, tokens], index) => tokens > 0n || index === 0)
    .map(([name, tokens, price]) => (
      <Detail key={name} name={name}>
        {numberText(tokens)}
        {price !== undefined && (
          <span class="muted">
            {" at "}
            <Money micros={price} /> per million
          </span>
        )}
      </Detail>
    ));
}
