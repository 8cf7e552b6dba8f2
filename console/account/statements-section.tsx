import { timestampDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import type { GetStatementResponse, StatementLine } from "../../gen/vx/v1/statement_pb.js";
import { Button } from "../shared/button.tsx";
import { csvOf, download } from "../shared/csv.ts";
import { type Column, DataTable } from "../shared/data-table.tsx";
import { PageHeader } from "../shared/frame.tsx";
import { Money, numberText } from "../shared/money.tsx";
import { PRODUCT } from "../shared/product.ts";
import { ErrorState } from "../shared/states.tsx";
import { Time } from "../shared/time.tsx";
import { useQuery } from "../shared/use-query.ts";
import type { Viewer } from "./viewer.ts";

/** What changed the balance in a month, in a form that can be printed. */
export function StatementsSection({ viewer }: { readonly viewer: Viewer }) {
  const [month, setMonth] = useState(() => new Date().toISOString().slice(0, 7));
  const { data, problem, reload } = useQuery((signal) => viewer.statementService.getStatement({ month }, { signal }), [month]);
  const isCurrent = month === new Date().toISOString().slice(0, 7);
  return (
    <>
      <PageHeader title={`Statement ${month}`}>
        <Button onClick={() => setMonth(monthAfter(month, -1))}>Previous month</Button>
        <Button onClick={() => setMonth(monthAfter(month, 1))} disabled={isCurrent}>
          Next month
        </Button>
        {data && <StatementButtons statement={data} />}
      </PageHeader>
      {problem && <ErrorState problem={problem} onRetry={reload} />}
      {data && (
        <>
          <p>
            {PRODUCT.name}, account <code>{data.accountId}</code>, in {data.currency}. Months are in UTC.
            {!data.isFinal && " The month is not over: the statement shows it until now."}
          </p>
          <StatementTable statement={data} />
        </>
      )}
    </>
  );
}

type StatementProps = { readonly statement: GetStatementResponse };

export function StatementButtons({ statement }: StatementProps) {
  const file = `statement-${statement.month}.csv`;
  return (
    <>
      <Button onClick={() => download(file, [csvOfStatement(statement)])}>Download CSV</Button>
      <Button tone="primary" onClick={() => print()}>
        Print
      </Button>
    </>
  );
}

export function StatementTable({ statement: { month, lines } }: StatementProps) {
  return (
    <div class="panel">
      <DataTable
        caption={`Statement ${month}`}
        columns={COLUMNS}
        rows={lines}
        keyOf={({ kind, id, model }) => `${kind} ${id} ${model}`}
      />
    </div>
  );
}

/** The month some months later. */
function monthAfter(month: string, months: number): string {
  const start = new Date(`${month}-01T00:00:00Z`);
  start.setUTCMonth(start.getUTCMonth() + months);
  return start.toISOString().slice(0, 7);
}

const KINDS: Readonly<Record<string, string>> = {
  opening_balance: "Opening balance",
  credit: "Credit",
  topup: "Payment",
  refund: "Refund",
  adjustment: "Adjustment",
  expiry: "Expired credit",
  generation: "Charges",
  closing_balance: "Closing balance",
};

const COLUMNS: readonly Column<StatementLine>[] = [
  { header: "Item", isRowHeader: true, cell: ({ kind }) => KINDS[kind] ?? kind },
  { header: "Time", cell: ({ createdAt }) => createdAt && <Time at={createdAt} /> },
  { header: "Description", isLong: true, cell: descriptionOf },
  { header: "Input tokens", isNumber: true, cell: (line) => countOf(line, line.inputTokens) },
  { header: "Output tokens", isNumber: true, cell: (line) => countOf(line, line.outputTokens) },
  { header: "Amount", isNumber: true, cell: ({ amountMicros }) => <Money micros={amountMicros} isAligned /> },
];

function descriptionOf({ kind, description, model, entries }: StatementLine): string {
  if (kind === "generation") return `${model}: ${numberText(entries)} calls`;
  return description === "" && entries > 0n ? `${numberText(entries)} further entries` : description;
}

function countOf({ kind }: StatementLine, count: bigint): string {
  return kind === "generation" ? numberText(count) : "";
}

/** As the API returns it for `Accept: text/csv`. */
function csvOfStatement({ lines }: GetStatementResponse): string {
  return csvOf([
    ["kind", "created_at", "id", "description", "model", "entries", "input_tokens", "output_tokens", "amount_micros", "amount"],
    ...lines.map((line) => [
      line.kind,
      line.createdAt ? timestampDate(line.createdAt).toISOString() : "",
      line.id,
      line.description,
      line.model,
      line.entries,
      line.inputTokens,
      line.outputTokens,
      line.amountMicros,
      line.amount,
    ]),
  ]);
}
