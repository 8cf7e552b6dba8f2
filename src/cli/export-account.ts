import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip, createZstdDecompress } from "node:zlib";
import { type Timestamp, timestampDate, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Account, AccountSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { LedgerEntrySchema } from "../../gen/vx/v1/ledger_pb.js";
import { GetStatementResponseSchema } from "../../gen/vx/v1/statement_pb.js";
import { AutoTopUpSchema } from "../../gen/vx/v1/top_up_pb.js";
import { csvWriterOf } from "../codec/message-csv.ts";
import { writeNewFile } from "../database/backup/new-file.ts";
import { END_BYTES, paddingOf, writeHeader } from "../database/backup/tar.ts";
import { listIn, type UnaryName } from "./call.ts";
import { type Admin, NO_TIMEOUT, withAdmin } from "./client.ts";
import { explained } from "./embedded-command.ts";
import { eachPage, type PageRequest } from "./list.ts";
import { printError, printResult, visible } from "./output.ts";
import { type JsonOption, jsonLine } from "./print.ts";

/** The export of one account. */
type Source = {
  readonly admin: Admin;
  readonly account: Account;
  /** The folder of archived months; undefined without one. */
  readonly archives: string | undefined;
};

type Options = JsonOption & { readonly account: string; readonly output: string; readonly archives: string | undefined };

type Lines = AsyncIterable<string> | Iterable<string>;

const QUARTER_MS = 900_000;

const README = `This archive has what is stored about one account of this service.

account.json            the account
keys.jsonl              its API keys, without their secrets, with their limits
members.jsonl           who works with the account on the customer page
limits.jsonl            the limits of the account
prices.jsonl            the prices of the account
ledger.jsonl, .csv      every credit, charge and correction
archived-ledger.jsonl   the same of archived months, as they are stored
usage.csv               sums of the charges by quarter of an hour, key, model and end user
statements.jsonl        the statement of each month
topups.jsonl            payments
auto-topup.jsonl        the settings of automatic payments
events.jsonl            events
failures.jsonl          refused and failed calls, without their content
webhooks.jsonl          endpoints of events, without their secrets
deliveries.jsonl        what was sent to them, with the answers
log.jsonl               what operators changed

Files that would be empty are left out. Each line of a .jsonl file is a JSON object, and a .csv file is a table; both are UTF-8. Names
of fields are those of the API reference at /docs. Amounts in micros are millionths of the currency unit; times are UTC.
`;

/** The files of the archive, in order. Each is read page by page. */
const FILES: Readonly<Record<string, (source: Source) => Lines>> = {
  "README.txt": () => [README],
  "account.json": ({ account }) => [jsonLine(AccountSchema, account)],
  "keys.jsonl": listOf("listKeys"),
  "members.jsonl": listOf("listMembers"),
  "limits.jsonl": ({ admin, account: { id } }) => lines(admin, "listLimits", { owner: { case: "accountId", value: id } }),
  "prices.jsonl": listOf("listAccountPrices"),
  "ledger.jsonl": listOf("listLedgerEntries"),
  "ledger.csv": ledgerTable,
  "archived-ledger.jsonl": archivedEntries,
  "usage.csv": usageTable,
  "statements.jsonl": statements,
  "topups.jsonl": listOf("listTopUps"),
  "auto-topup.jsonl": autoTopUp,
  "events.jsonl": listOf("listEvents"),
  "failures.jsonl": listOf("listFailures"),
  "webhooks.jsonl": listOf("listWebhooks"),
  "deliveries.jsonl": deliveries,
  "log.jsonl": listOf("listOperatorEvents"),
};

/**
 * Writes a tar archive, compressed with gzip, which every system can unpack; only its owner can read it. Memory does not grow with the
 * account.
 */
export async function exportAccount({ account: reference, output, archives, json }: Options): Promise<void> {
  const accountId = await explained(output, "written", () =>
    withAdmin(async (admin) => {
      const { account } = await admin.getAccount({ accountId: reference });
      if (!account) throw new Error("the response has no account");
      const folder = await mkdtemp(join(tmpdir(), "vx-export-"));
      try {
        const blocks = Readable.from(blocksOf({ admin, account, archives }, folder));
        await writeNewFile(output, (file) =>
          pipeline(blocks, createGzip(), async (compressed: AsyncIterable<Buffer>) => {
            for await (const chunk of compressed) await file.writeFile(chunk);
          }),
        );
      } finally {
        await rm(folder, { recursive: true });
      }
      return account.id;
    }),
  );
  await printResult(json, { account_id: accountId, file: output }, `${visible(output)}\n`);
}

/** A tar archive. The header of a file has its size, so each one is written to the folder first, and deleted afterwards. */
async function* blocksOf(source: Source, folder: string): AsyncGenerator<Buffer> {
  for (const [name, read] of Object.entries(FILES)) {
    const path = join(folder, name);
    await pipeline(Readable.from(read(source)), createWriteStream(path, { mode: 0o600 }));
    const { size: bytes } = await stat(path);
    if (bytes > 0) {
      yield writeHeader({ name, bytes });
      yield* createReadStream(path) as AsyncIterable<Buffer>;
      yield Buffer.alloc(paddingOf(bytes));
    }
    await rm(path);
  }
  yield Buffer.alloc(END_BYTES);
}

function listOf(method: UnaryName) {
  return ({ admin, account }: Source) => lines(admin, method, { accountId: account.id });
}

async function* lines(admin: Admin, method: UnaryName, request: object): AsyncGenerator<string> {
  const { item: desc, ...list } = listIn(admin, method, request);
  for await (const items of eachPage(list)) yield items.map((item) => jsonLine(desc, item)).join("");
}

async function* ledgerTable({ admin, account, archives }: Source): AsyncGenerator<string> {
  const { header, line } = csvWriterOf(LedgerEntrySchema);
  yield header;
  let first: bigint | undefined;
  const fetch = (page: PageRequest) => admin.listLedgerEntries({ accountId: account.id, ...page });
  for await (const entries of eachPage({ fetch, rows: (page) => page.entries })) {
    yield entries.map(line).join("");
    first = entries.at(-1)?.seq ?? first;
  }
  if (first !== undefined && first > 1n && archives === undefined)
    await printError(`Entries 1 to ${first - 1n} are archived: --archives FOLDER adds them.`);
}

async function* usageTable({ admin, account }: Source): AsyncGenerator<string> {
  const createdMs = timestampDate(account.createdAt as Timestamp).getTime();
  const from = timestampFromMs(createdMs - (createdMs % QUARTER_MS));
  const request = { accountId: account.id, format: "csv", from };
  for await (const { text } of admin.exportUsage(request, NO_TIMEOUT)) yield text;
}

/** Until now; entries of archived months have none. */
async function* statements({ admin, account }: Source): AsyncGenerator<string> {
  const created = timestampDate(account.createdAt as Timestamp);
  for (let month = new Date(Date.UTC(created.getUTCFullYear(), created.getUTCMonth())); month < new Date(); ) {
    const request = { accountId: account.id, month: month.toISOString().slice(0, 7) };
    const { statement } = await unless(Code.NotFound, admin.getStatement(request));
    if (statement) yield jsonLine(GetStatementResponseSchema, statement);
    month = new Date(Date.UTC(month.getUTCFullYear(), month.getUTCMonth() + 1));
  }
}

async function unless<Response extends object>(code: Code, call: Promise<Response>): Promise<Partial<Response>> {
  return await call.catch((error: unknown) => {
    if (error instanceof ConnectError && error.code === code) return {};
    throw error;
  });
}

async function* autoTopUp({ admin, account }: Source): AsyncGenerator<string> {
  // Without a payment provider, there is none.
  const { autoTopup } = await unless(Code.Unimplemented, admin.getAutoTopUp({ accountId: account.id }));
  if (autoTopup) yield jsonLine(AutoTopUpSchema, autoTopup);
}

async function* deliveries({ admin, account }: Source): AsyncGenerator<string> {
  const { webhooks } = await admin.listWebhooks({ accountId: account.id });
  for (const { id: webhookId } of webhooks) yield* lines(admin, "listDeliveries", { webhookId });
}

/** Upstreams and costs are not for customers. */
const FIELDS_OF_OPERATORS = ["lane", "upstream", "upstream_cost_micros"];

async function* archivedEntries({ account, archives }: Source): AsyncGenerator<string> {
  if (archives === undefined) return;
  const files = (await readdir(archives, { recursive: true })).filter((file) => file.endsWith(".jsonl.zst"));
  for (const file of files.sort()) {
    const input = createReadStream(join(archives, file)).pipe(createZstdDecompress());
    for await (const line of createInterface({ input })) {
      if (!line.includes(account.id)) continue;
      const entry = JSON.parse(line) as Record<string, unknown>;
      if (entry.account_id !== account.id) continue;
      for (const field of FIELDS_OF_OPERATORS) delete entry[field];
      yield `${JSON.stringify(entry)}\n`;
    }
  }
}
