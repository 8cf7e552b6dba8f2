import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { RerateResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { time } from "./arguments.ts";
import { withAdmin } from "./client.ts";
import { rerateColumns } from "./columns.ts";
import { type Define, type JsonOption, type ReasonOption, reasonOption, requiredOption, withExamples } from "./command.ts";
import { printError, printOut } from "./output.ts";
import { pricesIn, pricesMessage } from "./prices.ts";
import { formatTable, jsonLine } from "./print.ts";

type Options = JsonOption &
  ReasonOption & {
    readonly model: string;
    readonly from: Date;
    readonly to: Date;
    readonly prices: string;
    readonly apply?: boolean;
  };

/** Every charge of the range is read, so its duration has no useful bound. */
const NO_TIMEOUT_MS = 0;

export const define: Define = (command) => {
  requiredOption(command, "--model <model>", "the id or an alias of the model");
  requiredOption(command, "--from <time>", "charges at this time or later", time("--from"));
  requiredOption(command, "--to <time>", "charges before this time", time("--to"));
  requiredOption(command, "--prices <file>", "a YAML file with the prices, in the form of models.yaml");
  reasonOption(command, { isRequired: true });
  command
    .option("--apply", "correct the charges; without it, only print what each account would get back or owe")
    .option("--json", "print a response message as JSON for each account");
  withExamples(command, [
    'vx rerate --model acme-large --from 2030-01-01 --to 2030-01-15 --prices prices.yaml --reason "wrong price"',
    'vx rerate --model acme-large --from 2030-01-01 --to 2030-01-15 --prices prices.yaml --reason "wrong price" --apply',
  ]).action(rerate);
};

async function rerate({ model, from, to, prices, reason = "", apply = false, json }: Options): Promise<void> {
  const request = {
    model,
    from: timestampFromDate(from),
    to: timestampFromDate(to),
    prices: pricesMessage(await pricesIn(prices)),
    reason,
    apply,
  };
  await withAdmin(async (admin) => {
    const rows = [];
    for await (const row of admin.rerate(request, { timeoutMs: NO_TIMEOUT_MS })) {
      if (json) await printOut(jsonLine(RerateResponseSchema, row));
      else rows.push(row);
    }
    if (json) return;
    if (rows.length === 0) await printError("No charge differs.");
    else await printOut(formatTable(rerateColumns, rows));
    if (!apply && rows.length > 0) await printError("Nothing was changed. Add --apply to correct the charges.");
  });
}
