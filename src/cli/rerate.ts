import { RerateResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { NO_TIMEOUT, withAdmin } from "./client.ts";
import { printError, printOut } from "./output.ts";
import { flag, mapped, REQUIRED_REASON, required } from "./parameters.ts";
import { pricesIn } from "./prices.ts";
import { amountUnlessZero, columnsOf, formatTable, jsonLine, unlessZero } from "./print.ts";
import { command } from "./row.ts";
import { time } from "./values.ts";

const columns = columnsOf(
  RerateResponseSchema,
  `accountId, accountName, adjusted as CHARGES, creditMicros as GETS BACK, debitMicros as OWES, refused as NOT COVERED,
  refusedMicros as NOT COVERED AMOUNT, skipped as OWN PRICES`,
  {},
  { refused: unlessZero, refusedMicros: amountUnlessZero, skipped: unlessZero },
);

const EXAMPLE = '--model acme-large --from 2030-01-01 --to 2030-01-15 --prices prices.yaml --reason "wrong price"';

export const row = command({
  parameters: {
    model: required("--model <model>", "the id or an alias of the model"),
    from: required("--from <time>", "charges at this time or later", time),
    to: required("--to <time>", "charges before this time", time),
    prices: mapped(required("--prices <file>", "a YAML file with the prices, in the form of models.yaml"), pricesIn),
    reason: REQUIRED_REASON,
    apply: flag("--apply", "correct the charges; without it, only print what each account would get back or owe"),
    json: flag("--json", "print a response message as JSON for each account"),
  },
  examples: [EXAMPLE, `${EXAMPLE} --apply`],
  run: async ({ json, ...request }) => {
    await withAdmin(async (admin) => {
      const rows = [];
      for await (const row of admin.rerate(request, NO_TIMEOUT)) {
        if (json) await printOut(jsonLine(RerateResponseSchema, row));
        else rows.push(row);
      }
      if (json) return;
      if (rows.length === 0) await printError("No charge differs.");
      else await printOut(formatTable(columns, rows));
      if (!request.apply && rows.length > 0) await printError("Nothing was changed. Add --apply to correct the charges.");
    });
  },
});
