import { Credits } from "../shared/credits.tsx";
import { Detail, Details, IdDetail } from "../shared/details.tsx";
import { Time } from "../shared/time.tsx";
import type { AccountTabProps } from "./account-tab-props.ts";
import { RecentUsage } from "./recent-usage.tsx";

/** What the account used lately, and who it belongs to. */
export function AccountSummary({ account, params }: AccountTabProps) {
  return (
    <>
      <RecentUsage accountId={account.id} splits={["model", "key"]} section="accounts" params={params} />
      <Credits grants={account.grants} />
      <AccountDetails account={account} />
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
          {email === "" ? <span class="muted">None</span> : <a href={`mailto:${encodeURIComponent(email)}`}>{email}</a>}
        </Detail>
        <Detail name="Created">
          <Time at={createdAt} />
        </Detail>
        <Detail name="Notes">{notes === "" ? <span class="muted">None</span> : <span class="lines">{notes}</span>}</Detail>
      </Details>
    </section>
  );
}
