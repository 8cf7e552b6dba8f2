import { PageHeader } from "../shared/frame.tsx";
import { LimitTable, ownerText, useLimits } from "../shared/limit-list.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { Viewer } from "./viewer.ts";

const REFRESH_MS = 5_000;

/** Every limit that applies to the key that is signed in. */
export function LimitsSection({ viewer }: { readonly viewer: Viewer }) {
  const limits = useLimits(
    async (user, signal) => (await viewer.limitService.listLimits({ user }, { signal })).limits,
    "",
    REFRESH_MS,
  );
  const { data: names } = useQuery(viewer.keyNames, []);
  return (
    <>
      <PageHeader title="Limits" />
      <p>A call that could exceed one of these limits is refused before it runs, and costs nothing.</p>
      <LimitTable
        limits={limits}
        ownerOf={(limit) =>
          limit.owner === "key" ? `Key “${names?.get(limit.ownerId) ?? limit.ownerId}”` : ownerText(limit)
        }
      />
    </>
  );
}
