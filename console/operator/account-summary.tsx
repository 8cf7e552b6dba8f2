import { AutoTopUpDetails } from "../shared/auto-top-up-details.tsx";
import { Detail, Details, IdDetail } from "../shared/details.tsx";
import { PRODUCT } from "../shared/product.ts";
import { ErrorState } from "../shared/states.tsx";
import { Time } from "../shared/time.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { AccountTabProps } from "./account-tab-props.ts";
import { useApi } from "./operator-session.ts";
import { RecentUsage } from "./recent-usage.tsx";

/** What the account used lately, and who it belongs to. */
export function AccountSummary({ account, params }: AccountTabProps) {
  return (
    <>
      <RecentUsage accountId={account.id} splits={["model", "key"]} section="accounts" params={params} />
      <AccountDetails account={account} />
      {PRODUCT.takesPayments && <AccountAutoTopUp accountId={account.id} />}
    </>
  );
}

function AccountDetails({ account }: Pick<AccountTabProps, "account">) {
  const { id, externalId, email, notes, createdAt } = account;
  return (
    <section class="card" aria-labelledby="details-title">
      <h2 id="details-title">Details</h2>
      <Details>
        <IdDetail name="Account id" id={id} />
        {externalId === "" ? (
          <Detail name="External id">
            <span class="muted">None</span>
          </Detail>
        ) : (
          <IdDetail name="External id" id={externalId} />
        )}
        <Detail name="E-mail address">
          {email === "" ? (
            <span class="muted">None</span>
          ) : (
            <a href={`mailto:${encodeURIComponent(email)}`}>{email}</a>
          )}
        </Detail>
        <Detail name="Created">
          <Time at={createdAt} />
        </Detail>
        <Detail name="Notes">
          {notes === "" ? <span class="muted">None</span> : <span class="lines">{notes}</span>}
        </Detail>
      </Details>
    </section>
  );
}

/** The automatic top-ups, which "vx topups set-auto" changes. */
function AccountAutoTopUp({ accountId }: { readonly accountId: string }) {
  const api = useApi();
  const {
    data: auto,
    problem,
    reload,
  } = useQuery(async (signal) => (await api.getAutoTopUp({ accountId }, { signal })).autoTopup, [accountId]);
  if (problem) return <ErrorState problem={problem} onRetry={reload} />;
  return (
    <section class="card" aria-labelledby="auto-top-up-title">
      <h2 id="auto-top-up-title">Automatic top-ups</h2>
      {auto && <AutoTopUpDetails auto={auto} />}
    </section>
  );
}
