import type { Limit } from "../../gen/vx/v1/limit_pb.js";
import { LimitEditor } from "../shared/limit-editor.tsx";
import { ownerText, useLimits } from "../shared/limit-list.tsx";
import { useQuery } from "../shared/use-query.ts";
import { ActionButton } from "./action-button.tsx";
import { accountHref, keyHref, planHref } from "./links.ts";
import { useApi } from "./operator-session.ts";
import { ReasonDialog } from "./reason-dialog.tsx";

const REFRESH_MS = 5_000;

/** Whose limits: an account by its id, a key by its id, a plan by its name. */
type LimitOwner = { readonly case: "accountId" | "keyId" | "plan"; readonly value: string };

type LimitsProps = { readonly owner: LimitOwner; readonly isReadOnly?: boolean };

/** The limits of an account or a plan, or all that apply to a key. Those of the owner itself can be changed. */
export function Limits({ owner, isReadOnly = false }: LimitsProps) {
  const api = useApi();
  const limits = useLimits(
    async (user, signal) => (await api.listLimits({ owner, user }, { signal })).limits,
    owner.value,
    REFRESH_MS,
  );
  return (
    <LimitEditor
      limits={limits}
      ownerOf={(limit) => <Owner limit={limit} of={owner} />}
      // The requests per minute and the active keys have no id: they belong to the plan and to the key itself.
      isOwn={({ id, ownerId }) => id !== "" && ownerId === owner.value}
      isReadOnly={isReadOnly}
      isOfPlan={owner.case === "plan"}
      isOfAccount={owner.case === "accountId"}
      models={useModelIds()}
      set={(limit, reason) => api.setLimit({ owner, limit, reason })}
      remove={({ id }, reason) => api.removeLimit({ owner, limitId: id, reason })}
      actionOf={(action) => <ActionButton {...action} />}
      Form={ReasonDialog}
    />
  );
}

const HREFS: Readonly<Record<string, (id: string) => string>> = {
  account: (id) => accountHref(id, { tab: "limits" }),
  key: keyHref,
  plan: planHref,
};

function Owner({ limit, of }: { readonly limit: Limit; readonly of: LimitOwner }) {
  const { owner, ownerId } = limit;
  if (ownerId === of.value) return <>This {owner}</>;
  return <a href={HREFS[owner]?.(ownerId) ?? ""}>{owner === "key" ? "Ancestor" : ownerText(limit)}</a>;
}

/** One page of a list. */
const MAX_MODELS = 1_000;

/** Empty until they are loaded. */
export function useModelIds(): readonly string[] {
  const api = useApi();
  const { data } = useQuery(
    async (signal) => (await api.listModels({ pageSize: MAX_MODELS }, { signal })).models.map(({ id }) => id),
    [],
  );
  return data ?? [];
}
