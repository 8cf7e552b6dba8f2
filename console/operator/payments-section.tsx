import type { ComponentChildren } from "preact";
import type { AccountTopUp } from "../../gen/vx/admin/v1/admin_pb.js";
import { AutoTopUpCard } from "../shared/auto-top-up.tsx";
import { Copyable } from "../shared/copy-button.tsx";
import { type Column, PagedTable } from "../shared/data-table.tsx";
import { SelectFilter } from "../shared/filter-fields.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, moneyText } from "../shared/money.tsx";
import { OwedNotice, PAYMENT_STATES } from "../shared/payments.tsx";
import { PRODUCT } from "../shared/product.ts";
import { Badge, EmptyState } from "../shared/states.tsx";
import { Time, ZoneNote } from "../shared/time.tsx";
import { usePages } from "../shared/use-pages.ts";
import { AccountFilter } from "./account-filter.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { accountHref, foundHref } from "./links.ts";
import { refusalOf, useApi, useSession } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

/** The payments into all accounts, or into one. */
export function PaymentsSection({ params }: { readonly params: URLSearchParams }) {
  const account = params.get("account") ?? "";
  return (
    <>
      <PageHeader title="Payments" />
      <PaymentList section="payments" accountId={account} state={params.get("state") ?? ""}>
        <AccountFilter section="payments" value={account} />
      </PaymentList>
    </>
  );
}

/** The payments into an account and its automatic top-ups, as a part of its page. */
export function AccountPayments({ account, params }: AccountTabProps) {
  const { id: accountId, owedMicros, state } = account;
  const session = useSession();
  const { api } = session;
  return (
    <>
      <OwedNotice micros={owedMicros} />
      <PaymentList section="accounts" accountId={accountId} state={params.get("state") ?? ""} />
      {PRODUCT.takesPayments && state !== "closed" && (
        <AutoTopUpCard
          version={accountId}
          get={(signal) => api.getAutoTopUp({ accountId }, { signal })}
          put={(change, reason) => api.putAutoTopUp({ ...change, accountId, reason })}
          refusal={refusalOf(session, "putAutoTopUp")}
          canRaise
          Form={ReasonDialog}
        />
      )}
    </>
  );
}

/** The value of the state filter that selects payments with a problem. */
const PROBLEM = "problem";
const ATTENTION = "Needs attention";

type PaymentListProps = {
  /** The section of the URL that shows the payments; its parameter "state" is the filter. */
  readonly section: string;
  /** Empty for all accounts. */
  readonly accountId: string;
  readonly state: string;
  /** Another filter. */
  readonly children?: ComponentChildren;
};

function PaymentList({ section, accountId, state, children }: PaymentListProps) {
  const api = useApi();
  const filter = state === PROBLEM ? { onlyProblems: true } : { state };
  const pages = usePages(
    async (pageToken, signal) => {
      const request = { accountId, ...filter, pageToken, pageSize: 25 };
      const { topups, nextPageToken } = await api.listTopUps(request, { signal });
      return { rows: topups, nextPageToken };
    },
    JSON.stringify([accountId, state]),
  );
  return (
    <>
      <fieldset class={children === undefined ? "filters filters-single" : "filters"}>
        <legend class="hidden">Filters</legend>
        {children}
        <SelectFilter
          label="State"
          section={section}
          name="state"
          value={state}
          options={[["", "All states"], [PROBLEM, ATTENTION], ...Object.entries(PAYMENT_STATES)]}
        />
      </fieldset>
      <PagedTable
        caption="Payments"
        columns={children === undefined ? COLUMNS.filter((column) => column !== ACCOUNT) : COLUMNS}
        keyOf={({ topup, paymentId }) => topup?.id ?? paymentId}
        pages={pages}
        empty={
          <EmptyState title={state === "" ? "No payments" : "No payments in this state"}>
            {PRODUCT.takesPayments
              ? "What customers pay into their accounts appears here."
              : "Customers can pay when the server has the settings of a payment provider."}
          </EmptyState>
        }
      />
      <ZoneNote />
    </>
  );
}

const ACCOUNT: Column<AccountTopUp> = {
  header: "Account",
  cell: ({ accountId, accountName }) => (
    <a class="account-name" href={accountHref(accountId, { tab: "payments" })}>
      {accountName || accountId}
    </a>
  ),
};

const COLUMNS: readonly Column<AccountTopUp>[] = [
  {
    header: "Created",
    isRowHeader: true,
    cell: ({ topup, paymentId }) => (
      <>
        <Time at={topup?.createdAt} />
        {paymentId !== "" && (
          <div>
            <Copyable text={paymentId} what={`payment ${paymentId}`} isMuted />
          </div>
        )}
      </>
    ),
  },
  ACCOUNT,
  { header: "Amount", isNumber: true, cell: ({ topup }) => <Money micros={topup?.amountMicros ?? 0n} /> },
  { header: "Type", cell: ({ topup }) => (topup?.automatic ? "Automatic top-up" : "One-time payment") },
  { header: "State", cell: (payment) => <PaymentState payment={payment} /> },
  {
    header: "Ledger",
    cell: ({ entryId, accountId }) =>
      entryId === "" ? <span class="muted">–</span> : <a href={foundHref(entryId, accountId)}>Entry</a>,
  },
];

const TONES = { paid: "good", failed: "bad", refunded: "warn", disputed: "bad" } as const;

function PaymentState({ payment: { topup, problem } }: { readonly payment: AccountTopUp }) {
  if (!topup) return null;
  const { state, automatic, failure, refundedMicros, disputedMicros } = topup;
  const isPending = state === "pending";
  const name = automatic && isPending ? "Under way" : (PAYMENT_STATES[state] ?? state);
  const notes = [
    PROBLEMS[problem] ?? problem,
    failure.replaceAll("_", " "),
    refundedMicros > 0n ? `${moneyText(refundedMicros)} refunded` : "",
    disputedMicros > 0n ? `${moneyText(disputedMicros)} withdrawn` : "",
  ];
  return (
    <>
      {problem === "" ? (
        <Badge tone={TONES[state as keyof typeof TONES] ?? "neutral"}>{name}</Badge>
      ) : (
        <Badge tone="bad">{ATTENTION}</Badge>
      )}
      <div class="muted small">
        {notes.filter((note) => note !== "").join(", ")}
        {isPending && (
          <div>
            Since <Time at={topup.createdAt} />
          </div>
        )}
      </div>
    </>
  );
}

/** Why a payment was not credited, for each value of the field `problem`. */
const PROBLEMS: Readonly<Record<string, string>> = {
  account: "Paid for another account",
  page: "Paid on another page",
  payment: "Another payment is stored",
  currency: "Paid in another currency",
  amount: "Another amount was paid",
  balance: "The balance would be too high",
};
