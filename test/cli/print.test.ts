import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { expect, test } from "vitest";
import {
  AccountTopUpSchema,
  AuditFindingSchema,
  AuditResponseSchema,
  CreateAccountResponseSchema,
} from "../../gen/vx/admin/v1/admin_pb.js";
import { visible } from "../../src/cli/output.ts";
import { type Column, columnsOf, createTable, formatTable, formatTime, jsonLine } from "../../src/cli/print.ts";

type Row = { name: string; amount: string };

const columns: readonly Column<Row>[] = [
  { title: "NAME", value: ({ name }) => name },
  { title: "AMOUNT", value: ({ amount }) => amount, align: "right" },
];

/** Erase screen, erase screen in C1, bell, line break, and right-to-left override. */
const HOSTILE = "a\u001b[2Jb\u009b2Jc\u0007d\r\ne\u202ef\u2066g\u2028h\u007f";

test("columns are as wide as their widest cell, and amounts are right-aligned", () => {
  const rows = [
    { name: "a", amount: "$1.00" },
    { name: "größer ✓", amount: "-$1000.50" },
  ];
  expect(formatTable(columns, rows)).toBe(["NAME         AMOUNT", "a             $1.00", "größer ✓  -$1000.50", ""].join("\n"));
});

test("a column without any value is left out, and another empty cell is a dash", () => {
  expect(formatTable(columns, [{ name: "", amount: "$1.00" }])).toBe("AMOUNT\n $1.00\n");
  const rows = [
    { name: "", amount: "$1.00" },
    { name: "b", amount: "" },
  ];
  expect(formatTable(columns, rows)).toBe("NAME  AMOUNT\n-      $1.00\nb          -\n");
  expect(formatTable(columns, [])).toBe("NAME  AMOUNT\n");
});

test("a page with a value in a column that was left out has a new header", () => {
  const format = createTable(columns);
  expect(format([{ name: "", amount: "$1.00" }])).toBe("AMOUNT\n $1.00\n");
  expect(format([{ name: "a", amount: "$2.00" }])).toBe("NAME  AMOUNT\na      $2.00\n");
  expect(format([{ name: "", amount: "$3.00" }])).toBe("-      $3.00\n");
});

test("later pages have no header and keep the columns", () => {
  const format = createTable(columns);
  format([{ name: "a name", amount: "$1000.00" }]);
  expect(format([{ name: "b", amount: "$1.00" }])).toBe("b          $1.00\n");
});

test("titles, texts and alignment of columns follow from the fields of a message and of the messages in it", () => {
  const columns = columnsOf(
    AccountTopUpSchema,
    "id, accountId, amount, refundedMicros as BACK, automatic, createdAt, problem",
    {
      "of the top-up": "state, amountMicros, url, paidAt, receiptUrl, disputedMicros, failure, invoiceUrl",
      "of its row": "paymentId, accountName, entryId",
    },
    { problem: (problem, { topup }) => problem + topup?.state },
  );
  const createdAt = timestampFromDate(new Date("2030-01-31T12:00:00Z"));
  const topup = { id: "top_1", state: "paid", amount: "$25.00", refundedMicros: 5_000_000n, automatic: true, createdAt };
  const row = create(AccountTopUpSchema, { accountId: "acct_1", problem: "is ", topup });
  expect(formatTable(columns, [row]).split("\n")).toEqual([
    "ID     ACCOUNT  AMOUNT   BACK  AUTOMATIC  CREATED               PROBLEM",
    "top_1  acct_1   $25.00  $5.00  yes        2030-01-31T12:00:00Z  is paid",
    "",
  ]);
});

test("a field with messages has no column without a text", () => {
  const all = "accounts, entries, keys, balanceMicros, operatorEvents, consistent, findings";
  expect(() => columnsOf(AuditResponseSchema, all, {})).toThrow(/findings needs a text/);
  expect(columnsOf(AuditResponseSchema, all, {}, { findings: ({ length }) => String(length) })).toHaveLength(7);
});

test("a field without a column and a reason is a type error, and so is an unknown field", () => {
  expect(columnsOf(AuditFindingSchema, "accountId, rule", { "too long": "detail" })).toHaveLength(2);
  // @ts-expect-error detail is missing
  expect(columnsOf(AuditFindingSchema, "accountId, rule", {})).toHaveLength(2);
  // @ts-expect-error id is no field
  expect(() => columnsOf(AuditFindingSchema, "accountId, rule, detail, id", {})).toThrow();
});

test("cells contain no terminal control characters", () => {
  expect(visible(HOSTILE)).toBe("a�[2Jb�2Jc�d��e�f�g�h�");
  const lines = formatTable(columns, [{ name: HOSTILE, amount: HOSTILE }]).split("\n");
  expect(lines).toHaveLength(3);
  expect(lines.join("")).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
});

test("JSON is one line without terminal control characters and parses to the message", () => {
  const message = create(CreateAccountResponseSchema, { account: { name: HOSTILE, balanceMicros: 9_007_199_254_740_993n } });
  const line = jsonLine(CreateAccountResponseSchema, message);
  expect(line.slice(0, -1)).not.toMatch(/[\p{Cc}\p{Bidi_Control}\u2028\u2029]/u);
  expect(line).toMatch(/"balance_micros":9007199254740993,.*\n$/);
  expect(JSON.parse(line).account).toMatchObject({ name: HOSTILE, id: "", created_at: null });
});

test("times are printed in UTC, to the second", () => {
  expect(formatTime(timestampFromDate(new Date("2030-01-31T12:00:00.123Z")))).toBe("2030-01-31T12:00:00Z");
  expect(formatTime(undefined)).toBe("");
});
