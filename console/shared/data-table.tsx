import type { ComponentChildren } from "preact";
import { Button } from "./button.tsx";
import { ErrorState, Skeleton } from "./states.tsx";
import type { Pages } from "./use-pages.ts";

export type Column<Row> = {
  readonly header: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** The cell that names the row. */
  readonly isRowHeader?: boolean;
  /** Amounts and counts, aligned at the end. */
  readonly isNumber?: boolean;
  /** Long texts: in a card, they have a row of their own. */
  readonly isLong?: boolean;
  /** For columns of buttons: the header is only for screen readers. */
  readonly isAction?: boolean;
};

type DataTableProps<Row> = {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
};

/** A table in a panel. In a narrow panel, each row is a card with the names of the columns in it. */
export function DataTable<Row>({ caption, columns, rows, keyOf }: DataTableProps<Row>) {
  return (
    <table class="table">
      <caption class="hidden">{caption}</caption>
      <TableHead columns={columns} />
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map((column) => {
              const Cell = column.isRowHeader ? "th" : "td";
              return (
                <Cell
                  key={column.header}
                  scope={column.isRowHeader ? "row" : undefined}
                  class={classOf(column)}
                  data-label={column.header}
                >
                  {column.cell(row)}
                </Cell>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const SKELETON_ROWS = ["1", "2", "3", "4", "5", "6"];

function TableSkeleton<Row>({ columns }: { readonly columns: readonly Column<Row>[] }) {
  return (
    <table class="table" aria-hidden="true">
      <TableHead columns={columns} />
      <tbody>
        {SKELETON_ROWS.map((row) => (
          <tr key={row}>
            {columns.map((column) => (
              <td key={column.header} class={classOf(column)} data-label={column.header}>
                <Skeleton width={column.isNumber ? "4rem" : "7rem"} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function TableHead<Row>({ columns }: { readonly columns: readonly Column<Row>[] }) {
  return (
    <thead>
      <tr>
        {columns.map((column) => (
          <th key={column.header} scope="col" class={classOf(column)}>
            {column.isAction ? <span class="hidden">{column.header}</span> : column.header}
          </th>
        ))}
      </tr>
    </thead>
  );
}

function classOf<Row>({ isNumber, isAction, isLong }: Column<Row>): string | undefined {
  if (isAction) return "table-action";
  if (isLong) return "table-long";
  return isNumber ? "table-number" : undefined;
}

type PagedTableProps<Row> = Omit<DataTableProps<Row>, "rows"> & {
  readonly pages: Pages<Row>;
  /** Shown instead of a table without rows. */
  readonly empty: ComponentChildren;
};

/** A table with buttons for its pages. It has a state for loading, for no rows and for errors. */
export function PagedTable<Row>({ pages, empty, ...table }: PagedTableProps<Row>) {
  const { data, problem, isLoading, number, next, previous } = pages;
  if (problem) return <ErrorState problem={problem} onRetry={pages.reload} />;
  if (data === undefined) return <Loading columns={table.columns} />;
  const isPaged = next !== undefined || previous !== undefined || number > 1;
  return (
    <div class="panel" aria-busy={isLoading}>
      {data.rows.length > 0 ? <DataTable {...table} rows={data.rows} /> : empty}
      {isPaged && (
        <nav class="pager" aria-label={`Pages of ${table.caption}`}>
          <span class="muted small">Page {number}</span>
          <Button onClick={previous} disabled={previous === undefined || isLoading}>
            Previous
          </Button>
          <Button onClick={next} disabled={next === undefined || isLoading}>
            Next
          </Button>
        </nav>
      )}
    </div>
  );
}

function Loading<Row>({ columns }: { readonly columns: readonly Column<Row>[] }) {
  return (
    <div class="panel" aria-busy="true">
      <span class="hidden" role="status">
        Loading
      </span>
      <TableSkeleton columns={columns} />
    </div>
  );
}
