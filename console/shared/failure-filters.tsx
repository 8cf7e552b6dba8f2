import { type Timestamp, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { startOfDay } from "./days.ts";
import { DayFilters, type FilterValues, filterValuesOf, SelectFilter } from "./filter-fields.tsx";
import type { LedgerChoices } from "./ledger-filters.tsx";
import { periodsOf } from "./usage-range.tsx";

const NAMES = ["code", "key", "model", "from", "to"] as const;

export type FailureFilter = FilterValues<(typeof NAMES)[number]>;

/** The fields that the requests of customers and operators share. */
export type FailureRequest = {
  readonly code: string;
  readonly keyId: string;
  readonly model: string;
  readonly from?: Timestamp;
  readonly to?: Timestamp;
};

export function failureFilterOf(params: URLSearchParams): FailureFilter {
  return filterValuesOf(params, NAMES);
}

export function failureRequestOf({ code, key, model, from, to }: FailureFilter): FailureRequest {
  const hour = from.includes("T") ? periodsOf({ from, to }) : undefined;
  const start = hour?.starts[0] ?? startOfDay(from, 0);
  const end = hour?.end ?? startOfDay(to, 1);
  return {
    code,
    keyId: key,
    model,
    ...(start && { from: timestampFromDate(start) }),
    ...(end && { to: timestampFromDate(end) }),
  };
}

/** The errors with which metered calls end, and what people call them. */
export const FAILURE_TITLES: Readonly<Record<string, string>> = {
  rate_limit_exceeded: "Too many requests per minute",
  insufficient_balance: "Balance too low",
  payment_reversed: "Payment reversed",
  budget_exceeded: "Limit of cost",
  token_limit_exceeded: "Limit of tokens",
  generation_limit_exceeded: "Limit of generations",
  concurrency_limit_reached: "Too many running generations",
  invalid_argument: "Invalid request",
  context_length_exceeded: "Context window exceeded",
  max_cost_too_low: "Maximum cost too low",
  request_too_large: "Request too large",
  unsupported_media_type: "Unknown content type",
  thread_unsupported_request: "Threads are not supported",
  model_not_found: "Unknown model",
  model_not_allowed: "Model not allowed",
  insufficient_scope: "Scope missing",
  address_not_allowed: "Address not allowed",
  account_suspended: "Account suspended",
  revoked_api_key: "Revoked key",
  expired_api_key: "Expired key",
  idempotency_in_progress: "Same call is running",
  idempotency_key_reused: "Idempotency key reused",
  generation_interrupted: "Interrupted before",
  upstream_error: "Model failed",
  unavailable: "Temporarily unavailable",
  overloaded: "Overloaded",
  deadline_exceeded: "Deadline exceeded",
  internal: "Internal error",
  canceled: "Caller disconnected",
};

const DAY_LENGTH = "2026-11-22".length;

type FailureFiltersProps = {
  readonly filter: FailureFilter;
  readonly choices: LedgerChoices;
  /** The section of the URL that shows the failures. */
  readonly section: string;
};

export function FailureFilters({ filter, choices: { models, keys }, section }: FailureFiltersProps) {
  return (
    <fieldset class="filters">
      <legend class="hidden">Filters</legend>
      <SelectFilter
        label="Error"
        section={section}
        name="code"
        value={filter.code}
        options={[["", "All errors"], ...Object.entries(FAILURE_TITLES)]}
      />
      <SelectFilter
        label="Model"
        section={section}
        name="model"
        value={filter.model}
        options={[["", "All models"], ...models.map((id) => [id, id] as const)]}
      />
      {(keys.size > 0 || filter.key !== "") && (
        <SelectFilter label="Key" section={section} name="key" value={filter.key} options={[["", "All keys"], ...keys]} />
      )}
      <DayFilters section={section} from={filter.from.slice(0, DAY_LENGTH)} to={filter.to} />
    </fieldset>
  );
}
