import { useState } from "preact/hooks";
import { AccountEventList, EVENTS_PER_PAGE, type EventSource } from "../shared/account-event-list.tsx";
import { ACCOUNT_EVENT_TYPES } from "../shared/account-event-text.ts";
import { FormDialog } from "../shared/form-dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { AMOUNT_HINT, amountOf, Money, moneyText } from "../shared/money.tsx";
import { TextField } from "../shared/text-field.tsx";
import { useToast } from "../shared/toast.tsx";
import { useQuery } from "../shared/use-query.ts";
import { Action } from "./action.tsx";
import type { Viewer } from "./viewer.ts";

type EventsSectionProps = { readonly viewer: Viewer; readonly params: URLSearchParams };

/** What happened to the account, and when it is warned of a low balance. */
export function EventsSection({ viewer, params }: EventsSectionProps) {
  const source: EventSource = {
    id: viewer.id,
    list: async (type, pageToken, signal) => {
      const types = type === "" ? [] : [type];
      const request = { types, order: "desc", after: pageToken, pageSize: EVENTS_PER_PAGE };
      const { events, nextAfter, hasMore } = await viewer.eventService.listEvents(request, { signal });
      return { rows: events, nextPageToken: hasMore ? nextAfter : "" };
    },
    watch: (type, signal) =>
      viewer.eventService.watchEvents({ types: type === "" ? [] : [type], after: "now" }, { signal, timeoutMs: 0 }),
    types: ACCOUNT_EVENT_TYPES,
    section: "events",
  };
  return (
    <>
      <PageHeader title="Events" />
      <LowBalance viewer={viewer} />
      <AccountEventList source={source} type={params.get("type") ?? ""} />
    </>
  );
}

/** The balance below which the account gets an event. Changing it needs the scope "billing". */
function LowBalance({ viewer }: Pick<EventsSectionProps, "viewer">) {
  const { accountService } = viewer;
  const [isOpen, setOpen] = useState(false);
  const { data: account, reload } = useQuery((signal) => accountService.getAccount({}, { signal }), []);
  if (account === undefined) return null;
  const micros = account.lowBalanceMicros;
  return (
    <section class="card usage-header" aria-labelledby="low-balance">
      <div>
        <h2 id="low-balance">Low balance</h2>
        <p>
          {micros === undefined ? (
            "No event is written when the balance becomes low."
          ) : (
            <>
              A charge that takes the balance below <Money micros={micros} /> writes the event “balance.low”.
            </>
          )}
        </p>
      </div>
      {viewer.membership || viewer.canBill ? (
        <Action viewer={viewer} method="updateAccount" onClick={() => setOpen(true)}>
          Change
        </Action>
      ) : (
        <p class="muted small">A key with the scope “billing” can change this.</p>
      )}
      {isOpen && (
        <LowBalanceDialog
          micros={micros}
          save={async (lowBalanceMicros) => {
            await accountService.updateAccount({
              ...(lowBalanceMicros !== undefined && { lowBalanceMicros }),
              updateMask: { paths: ["low_balance_micros"] },
            });
            reload();
          }}
          onClose={() => setOpen(false)}
        />
      )}
    </section>
  );
}

type LowBalanceDialogProps = {
  readonly micros: bigint | undefined;
  readonly save: (micros: bigint | undefined) => Promise<void>;
  readonly onClose: () => void;
};

function LowBalanceDialog({ micros, save, onClose }: LowBalanceDialogProps) {
  const toast = useToast();
  const [text, setText] = useState(micros === undefined ? "" : moneyText(micros));
  const amount = amountOf(text);
  const isValid = text.trim() === "" || (amount !== undefined && amount >= 0n);
  return (
    <FormDialog
      title="Low balance"
      action="Save"
      errors={{ amount: isValid ? undefined : "Enter an amount with at most 6 decimals, such as 5.00." }}
      onSubmit={async () => {
        await save(amount);
        toast("The low balance is changed.");
      }}
      onClose={onClose}
    >
      {({ amount: error }) => (
        <TextField
          label="Amount"
          hint={`${AMOUNT_HINT} Empty: no event.`}
          error={error}
          value={text}
          maxLength={30}
          inputMode="decimal"
          onChange={setText}
        />
      )}
    </FormDialog>
  );
}
