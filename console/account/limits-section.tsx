import { PageHeader } from "../shared/frame.tsx";
import { LimitEditor } from "../shared/limit-editor.tsx";
import { LimitTable, ownerText, useLimits } from "../shared/limit-list.tsx";
import { useQuery } from "../shared/use-query.ts";
import { Action } from "./action.tsx";
import { PlainForm } from "./key-page.tsx";
import type { Viewer } from "./viewer.ts";

const REFRESH_MS = 5_000;

/** Every limit that applies to the key that is signed in, or for members those of the account and of each of its keys. */
export function LimitsSection({ viewer }: { readonly viewer: Viewer }) {
  const limits = useLimits(
    async (user, signal) => (await viewer.limitService.listLimits({ user }, { signal })).limits,
    "",
    REFRESH_MS,
  );
  const { data: names } = useQuery(viewer.keyNames, []);
  const { data: models = [] } = useQuery(viewer.modelIds, []);
  return (
    <>
      <PageHeader title="Limits" />
      <p>
        A call that could exceed one of these limits is refused before it runs, and costs nothing. Only the operator of this
        service can change a limit that it set.
      </p>
      {viewer.membership ? (
        <LimitEditor
          limits={limits}
          ownerOf={ownerText}
          isOwn={({ owner, setByOperator }) => owner === "account" && !setByOperator}
          isReadOnly={false}
          isOfAccount
          models={models}
          set={(limit) => viewer.pageService.setLimit({ limit })}
          remove={({ id: limitId }) => viewer.pageService.removeLimit({ limitId })}
          actionOf={(action) => <Action {...action} viewer={viewer} />}
          Form={PlainForm}
        />
      ) : (
        <LimitTable
          limits={limits}
          ownerOf={(limit) => (limit.owner === "key" ? `Key “${names?.get(limit.ownerId) ?? limit.ownerId}”` : ownerText(limit))}
        />
      )}
    </>
  );
}
