import type { ComponentChildren } from "preact";
import type { LedgerEntry } from "../../gen/vx/v1/ledger_pb.js";
import { capitalized } from "./capitalized.ts";
import { Detail, Details, IdDetail } from "./details.tsx";
import { Dialog } from "./dialog.tsx";
import { EntryCosts } from "./entry-costs.tsx";
import { Money, numberText } from "./money.tsx";
import { longTimeText } from "./time.tsx";

type EntryDialogProps = {
  readonly entry: LedgerEntry;
  /** Empty if it is not known. */
  readonly keyName: string;
  /** The address of the page that shows a key. */
  readonly keyHref: (id: string) => string;
  readonly onClose: () => void;
  /** More fields, before those of the entry. */
  readonly children?: ComponentChildren;
  /** What the viewer can do with the entry. */
  readonly actions?: ComponentChildren;
};

/** Everything that the ledger says about one change of the balance. */
export function EntryDialog({ entry, keyName, keyHref, onClose, children, actions }: EntryDialogProps) {
  return (
    <Dialog title={entry.reason || capitalized(entry.kind)} onClose={onClose}>
      <Details isInDialog>
        {children}
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
        {entry.kind === "generation" && <EntryCosts entry={entry} />}
        {entry.priceTier > 0n && <Detail name="Prices">Above {numberText(entry.priceTier)} input tokens</Detail>}
        <IdDetail name="Generation id" id={entry.generationId} />
        <IdDetail name="Request id" id={entry.requestId} />
        <Detail name="Key">{keyName}</Detail>
        <IdDetail name="Key id" id={entry.keyId} href={keyHref(entry.keyId)} />
        <IdDetail name="Trace id" id={entry.traceId} />
        <IdDetail name="Corrects the entry" id={entry.adjustedEntryId} />
        <IdDetail name="Entry id" id={entry.id} />
        <Detail name="Number">{numberText(entry.seq)}</Detail>
      </Details>
      {actions && (
        <div class="dialog-body">
          <div class="dialog-actions">{actions}</div>
        </div>
      )}
    </Dialog>
  );
}
