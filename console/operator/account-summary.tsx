import { Detail, Details } from "../shared/details.tsx";
import { Time } from "../shared/time.tsx";
import type { AccountTabProps } from "./account-page.tsx";

/** Who the account belongs to. */
export function AccountSummary({ account }: AccountTabProps) {
  const { id, externalId, email, notes, createdAt } = account;
  return (
    <section class="card" aria-labelledby="details-title">
      <h2 id="details-title">Details</h2>
      <Details>
        <Detail name="Account id" isCode>
          {id}
        </Detail>
        <Detail name="External id">{externalId || <span class="muted">None</span>}</Detail>
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
