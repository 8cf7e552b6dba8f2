import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import { countsCost } from "../../src/domain/limit.ts";
import { capitalized } from "./capitalized.ts";
import { type Column, PagedTable } from "./data-table.tsx";
import { moneyText, numberText } from "./money.tsx";
import { SearchField } from "./search-field.tsx";
import { EmptyState } from "./states.tsx";
import { Time, ZoneNote } from "./time.tsx";
import { type Pages, usePages } from "./use-pages.ts";

/** Refreshes count as use of a session, which must end on a page that was left open. */
const MAX_REFRESHING_MS = 1_800_000;

/** Names of the quantities that limits count. */
export const METRICS: Readonly<Record<string, string>> = {
  cost: "Cost",
  tokens: "Tokens",
  generations: "Generations",
  concurrent: "Running generations",
  cost_alert: "Alert on cost",
  requests: "Requests",
  active_keys: "Active keys",
};

/** What holds an amount of which nothing is used up. */
const HELD: Readonly<Record<string, string>> = { concurrent: "running", active_keys: "active" };

/** "Cost per month" */
export function limitText({ metric, window }: Pick<Limit, "metric" | "window">): string {
  const name = METRICS[metric] ?? metric;
  if (window === "") return name;
  return window === "total" ? `${name} in total` : `${name} per ${window}`;
}

/** Cost as money, other amounts with separators. */
export function limitAmountText({ metric }: Pick<Limit, "metric">, amount: bigint): string {
  return countsCost(metric) ? moneyText(amount) : numberText(amount);
}

export type LimitList = {
  readonly pages: Pages<Limit>;
  readonly onUser: (user: string) => void;
};

/** Loads limits, for an end user if one is entered, and again after each wait. `id` identifies the list. */
export function useLimits(
  load: (user: string, signal: AbortSignal) => Promise<readonly Limit[]>,
  id: string,
  refreshMs: number,
): LimitList {
  const [user, setUser] = useState("");
  const openedMs = useRef(Date.now());
  const pages = usePages(
    async (_, signal) => ({ rows: await load(user, signal), nextPageToken: "" }),
    JSON.stringify([id, user]),
  );
  useEffect(() => {
    if (pages.isLoading || Date.now() - openedMs.current > MAX_REFRESHING_MS) return;
    const timer = setTimeout(pages.reload, refreshMs);
    return () => clearTimeout(timer);
  }, [pages.isLoading]);
  return { pages, onUser: setUser };
}

type LimitTableProps = {
  readonly limits: LimitList;
  /** The owner of a limit as the viewer knows it. */
  readonly ownerOf: (limit: Limit) => ComponentChildren;
  readonly actionsOf?: (limit: Limit) => ComponentChildren;
  /** Each key of a plan has the limits of the plan, so that they have no use of their own. */
  readonly isOfPlan?: boolean;
  /** Whether the list is that of an account. Each of its keys has the limits of its plan, which are listed without the use. */
  readonly isOfAccount?: boolean;
};

type OfList = Pick<LimitTableProps, "isOfPlan" | "isOfAccount">;

/** Limits with what is used, held and left, and when that ends. */
export function LimitTable({ limits: { pages, onUser }, ownerOf, actionsOf, ...list }: LimitTableProps) {
  const isPerUser = pages.data?.rows.some(({ per }) => per === "user") === true;
  return (
    <>
      {isPerUser && !list.isOfPlan && (
        <SearchField label="End user" placeholder="End user whose use is shown" maxLength={128} onSearch={onUser} />
      )}
      <PagedTable
        caption="Limits"
        columns={columnsOf(ownerOf, actionsOf, list)}
        // A limit of a plan counts for the key and for each of its ancestors.
        keyOf={(limit) => String(pages.data?.rows.indexOf(limit))}
        pages={pages}
        empty={<EmptyState title="No limits of its own" />}
      />
      <ZoneNote />
    </>
  );
}

function columnsOf(
  ownerOf: LimitTableProps["ownerOf"],
  actionsOf: LimitTableProps["actionsOf"],
  { isOfPlan = false, isOfAccount = false }: OfList,
): readonly Column<Limit>[] {
  const isOfEachKey = ({ owner, metric }: Limit) => isOfAccount && owner === "plan" && metric !== "active_keys";
  const columns: Column<Limit>[] = [
    {
      header: "Limit",
      isRowHeader: true,
      cell: (limit) => (
        <>
          {limitText(limit)}
          <div class="muted small regular">{isOfPlan ? "" : ownerOf(limit)}</div>
          <div class="muted small regular wrap">
            {[
              limit.model,
              isOfEachKey(limit) ? "each key" : "",
              limit.per === "user" ? "each end user" : "",
              isFixed(limit) ? "set by the operator" : "",
            ]
              .filter((text) => text !== "")
              .join(", ")}
          </div>
        </>
      ),
    },
    { header: "Amount", cell: (limit) => <Amount limit={limit} /> },
  ];
  if (!isOfPlan) {
    columns.push(
      {
        header: "Use",
        isLong: true,
        cell: (limit) => (isOfEachKey(limit) ? <span class="muted">Counted for each key</span> : <Use limit={limit} />),
      },
      {
        header: "Resets",
        cell: ({ metric, resetsAt }) => <Time at={resetsAt} none={metric in HELD ? "–" : "Never"} />,
      },
    );
  }
  if (actionsOf) columns.push({ header: "Actions", isAction: true, cell: actionsOf });
  return columns;
}

/** Whether only operators change it, although it is not of a plan. */
function isFixed({ setByOperator, owner }: Limit): boolean {
  return setByOperator && owner !== "plan";
}

/** The raised amount while one is valid. */
function Amount({ limit }: { readonly limit: Limit }) {
  const { amount, temporaryAmount, temporaryUntil } = limit;
  if (!isRaised(limit)) return limitAmountText(limit, amount);
  return (
    <>
      {limitAmountText(limit, temporaryAmount ?? amount)}
      <div class="muted small">
        Raised from {limitAmountText(limit, amount)} until <Time at={temporaryUntil} />
      </div>
    </>
  );
}

export function isRaised({ temporaryUntil }: Limit): boolean {
  return temporaryUntil !== undefined && Number(temporaryUntil.seconds) * 1_000 > Date.now();
}

function Use({ limit }: { readonly limit: Limit }) {
  const { metric, spent, held, remaining, countedSince } = limit;
  const heldName = HELD[metric] ?? "held";
  const parts = [
    ...(metric in HELD ? [] : [{ name: "used", part: spent }]),
    ...(held > 0n || metric in HELD ? [{ name: heldName, part: held }] : []),
    { name: "left", part: remaining },
  ];
  const whole = Math.max(Number(spent + held + remaining), 1);
  return (
    <div class="limit-use">
      <div class={remaining === 0n ? "limit-bar limit-bar-full" : "limit-bar"} aria-hidden="true">
        <span class="limit-used" style={{ width: `${(Number(spent) / whole) * 100}%` }} />
        <span class="limit-held" style={{ width: `${(Number(held) / whole) * 100}%` }} />
      </div>
      <div class="small">{parts.map(({ name, part }) => `${limitAmountText(limit, part)} ${name}`).join(" · ")}</div>
      {countedSince && !(metric in HELD) && (
        <div class="muted small">
          Counted since <Time at={countedSince} />
        </div>
      )}
    </div>
  );
}

/** "Key", "Plan “pro”" */
export function ownerText({ owner, ownerId }: Limit): string {
  return owner === "plan" ? `Plan “${ownerId}”` : capitalized(owner);
}
