import { Code, ConnectError } from "@connectrpc/connect";
import { useEffect, useRef, useState } from "preact/hooks";
import type { AuditFinding, AuditResponse } from "../../gen/vx/admin/v1/admin_pb.js";
import type { WatchAuditResponse } from "../../gen/vx/admin/v1/console_pb.js";
import { Button } from "../shared/button.tsx";
import { type Column, DataTable } from "../shared/data-table.tsx";
import { Detail, Details } from "../shared/details.tsx";
import { ProblemNotice, useAction } from "../shared/dialog.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { moneyText, numberText } from "../shared/money.tsx";
import { Stat, Stats } from "../shared/stat.tsx";
import { Notice } from "../shared/states.tsx";
import { Time } from "../shared/time.tsx";
import { accountHref } from "./links.ts";
import { useLiveFigures } from "./live-figures.tsx";
import { useSession } from "./operator-session.ts";

/** Recomputes all balances and hashes, and shows what differs. */
export function AuditSection() {
  const { live } = useSession();
  const [progress, setProgress] = useState<WatchAuditResponse>();
  const { isBusy, problem, perform } = useAction();
  const controller = useRef<AbortController>(undefined);
  useEffect(() => () => controller.current?.abort(), []);
  const run = async () => {
    controller.current = new AbortController();
    setProgress(undefined);
    const { signal } = controller.current;
    let last: WatchAuditResponse | undefined;
    try {
      for await (const message of live.watchAudit({}, { signal, timeoutMs: 0 })) {
        last = message;
        setProgress(message);
      }
    } catch (error) {
      if (signal.aborted) return;
      throw error;
    }
    if (!last?.result) throw new ConnectError("The server ended the audit before its result.", Code.Unavailable);
  };
  const result = isBusy ? undefined : progress?.result;
  return (
    <>
      <PageHeader title="Audit">
        {isBusy ? (
          <Button onClick={() => controller.current?.abort()}>Cancel</Button>
        ) : (
          <Button tone="primary" onClick={() => void perform(run)}>
            Run audit
          </Button>
        )}
      </PageHeader>
      <p>
        An audit recomputes every balance, the usage and every hash from the ledger entries, the prices and the operator log. It
        changes nothing, and the service keeps accepting calls.
      </p>
      <LastAudit />
      {problem && <ProblemNotice problem={problem} />}
      {isBusy && <Progress progress={progress} />}
      {result && <Result result={result} />}
    </>
  );
}

/** The last complete audit of all servers, and the schedule. */
function LastAudit() {
  const audit = useLiveFigures().latest?.audit;
  if (audit === undefined) return null;
  const { lastStartedAt, lastSeconds, lastEntries, lastFindings, everyHours, nextAt } = audit;
  return (
    <section class="card" aria-labelledby="last-audit">
      <h2 id="last-audit">Last audit</h2>
      <Details>
        <Detail name="Started">
          <Time at={lastStartedAt} none="Never" />
        </Detail>
        {lastStartedAt && (
          <>
            <Detail name="Result">{lastFindings === 0 ? "Consistent" : differencesText(lastFindings)}</Detail>
            <Detail name="Duration">
              {durationText(lastSeconds)}, {numberText(lastEntries)} ledger entries
            </Detail>
          </>
        )}
        <Detail name="Schedule">
          {everyHours === 0 ? (
            "None: set VX_AUDIT_HOURS to audit regularly."
          ) : (
            <>
              Every {numberText(everyHours)} hours, next <Time at={nextAt} none="within a minute" />
            </>
          )}
        </Detail>
      </Details>
    </section>
  );
}

function differencesText(count: number): string {
  return count === 1 ? "one difference" : `${numberText(count)} differences`;
}

function durationText(seconds: number): string {
  if (seconds <= 1) return "1 second";
  if (seconds < 120) return `${numberText(Math.ceil(seconds))} seconds`;
  return `${numberText(Math.round(seconds / 60))} minutes`;
}

function Progress({ progress }: { readonly progress: WatchAuditResponse | undefined }) {
  const { partsDone = 0, parts = 0, entries = 0n } = progress ?? {};
  return (
    <div class="card progress">
      <progress aria-label="Progress of the audit" max={Math.max(parts, 1)} value={partsDone} />
      <p class="muted small" role="status">
        {numberText(partsDone)} of {numberText(parts)} parts, {numberText(entries)} ledger entries
      </p>
    </div>
  );
}

const COLUMNS: readonly Column<AuditFinding>[] = [
  { header: "Rule", isRowHeader: true, cell: ({ rule }) => <code class="nowrap">{rule}</code> },
  {
    header: "Account",
    cell: ({ accountId }) => (accountId === "" ? <span class="muted">–</span> : <a href={accountHref(accountId)}>{accountId}</a>),
  },
  { header: "Difference", isLong: true, cell: ({ detail }) => <span class="wrap">{detail}</span> },
];

function Result({ result }: { readonly result: AuditResponse }) {
  const { consistent, accounts, entries, keys, balanceMicros, findings, operatorEvents } = result;
  return (
    <>
      <Notice tone={consistent ? "good" : "bad"}>
        {consistent ? "Consistent: the audit found no difference." : `The audit found ${differencesText(findings.length)}.`} The
        sum of all balances is {moneyText(balanceMicros)}.
      </Notice>
      <Stats>
        <Stat label="Accounts" value={numberText(accounts)} />
        <Stat label="Ledger entries" value={numberText(entries)} />
        <Stat label="Keys" value={numberText(keys)} />
        <Stat label="Operator log entries" value={numberText(operatorEvents)} />
      </Stats>
      {findings.length > 0 && (
        <div class="panel">
          <DataTable
            caption="Differences"
            columns={COLUMNS}
            rows={findings}
            keyOf={({ rule, accountId, detail }) => `${rule} ${accountId} ${detail}`}
          />
        </div>
      )}
    </>
  );
}
