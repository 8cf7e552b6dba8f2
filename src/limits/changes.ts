import { create } from "@bufbuild/protobuf";
import { type Limit, LimitSchema } from "../../gen/vx/v1/limit_pb.js";
import type { ApiCall, Deps } from "../api/define-service.ts";
import { DomainError } from "../domain/errors.ts";
import { ALERT_WINDOWS, type LimitToSet, type LimitWindow, type SetMetric } from "../domain/limit.ts";
import { makeLoggedChange } from "../operators/operator-action.ts";
import { dateOf } from "../rules/request-values.ts";
import { type LimitOwner, removeLimit as removeLimitRow, setLimit as setLimitRow } from "./store.ts";
import { viewLimit } from "./views.ts";

/** Only operators give a reason. */
export async function setLimitOf(deps: Deps, owner: LimitOwner, toSet: LimitToSet, call: ApiCall, reason?: string) {
  const row = await makeLoggedChange(deps, call, { target: owner.id, reason, details: limitChangeOf(toSet) }, (action) =>
    setLimitRow(deps.database, action, owner, toSet, deps.ids),
  );
  return { limit: viewLimit(row, owner) };
}

export function limitChangeOf({ metric, window, amount, model, perUser, temporary }: LimitToSet) {
  return {
    metric,
    window,
    amount,
    model,
    per: perUser ? "user" : "",
    temporary_amount: temporary?.amount,
    temporary_until: temporary?.until.toISOString(),
  };
}

/** Only operators give a reason. */
export async function removeLimitOf(deps: Deps, owner: LimitOwner, limitId: string, call: ApiCall, reason?: string) {
  const change = { target: owner.id, reason, details: { limit_id: limitId } };
  await makeLoggedChange(deps, call, change, (action) => removeLimitRow(deps.database, action, owner, limitId));
  return {};
}

/** The limits of one owner, which must differ in what they limit. */
export function limitsToSet(deps: Pick<Deps, "catalog">, limits: readonly Limit[]): LimitToSet[] {
  const toSet = limits.map((limit, i) => limitToSet(deps, limit, `limits[${i}]`));
  const subjects = toSet.map(({ metric, window, model, perUser }) => JSON.stringify([metric, window, model, perUser]));
  subjects.forEach((subject, i) => {
    const first = subjects.indexOf(subject);
    if (first < i) {
      const rule = `must differ from limits[${first}] in metric, window, model or per`;
      throw DomainError.ofField(`limits[${i}]`, rule);
    }
  });
  return toSet;
}

/** Checks what the rules of the .proto cannot. The model of a limit is stored under its id, not an alias. */
export function limitToSet({ catalog }: Pick<Deps, "catalog">, limit: Limit = create(LimitSchema), field: string): LimitToSet {
  const { metric, window, amount, model, temporaryAmount, temporaryUntil } = limit;
  if ((window === "") !== (metric === "concurrent")) {
    const rule = metric === "concurrent" ? 'must be empty for the metric "concurrent"' : "is required";
    throw DomainError.ofField(`${field}.window`, rule);
  }
  if (metric === "cost_alert") {
    if (!ALERT_WINDOWS.includes(window)) {
      const rule = `must be one of ${ALERT_WINDOWS.join(", ")} for the metric "cost_alert"`;
      throw DomainError.ofField(`${field}.window`, rule);
    }
    if (amount === 0n) throw DomainError.ofField(`${field}.amount`, "must be above 0: no charge reaches 0");
  }
  const known = model === "" ? undefined : catalog.get(model);
  if (model !== "" && !known) throw DomainError.ofField(`${field}.model`, `there is no model "${model}"`);
  const until = dateOf(`${field}.temporary_until`, temporaryUntil);
  if ((temporaryAmount === undefined) !== (until === undefined)) {
    const missing = until === undefined ? "temporary_until" : "temporary_amount";
    throw DomainError.ofField(`${field}.${missing}`, "is required: a temporary amount needs both fields");
  }
  if (temporaryAmount !== undefined && temporaryAmount < amount) {
    throw DomainError.ofField(`${field}.temporary_amount`, "must be at least the amount");
  }
  return {
    metric: metric as SetMetric,
    window: window as LimitWindow,
    amount,
    model: known?.id ?? "",
    perUser: limit.per === "user",
    temporary: temporaryAmount === undefined || !until ? undefined : { amount: temporaryAmount, until },
  };
}
