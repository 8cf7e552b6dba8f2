import { readFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { AccountPricesSchema, PriceVersionSchema, SetAccountPricesResponseSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Prices, PricesSchema, type PriceTier } from "../../gen/vx/v1/prices_pb.js";
import { formatMicros } from "../domain/money.ts";
import { parsePrices } from "../models/models-file.ts";
import { list } from "./call.ts";
import { withAdmin } from "./client.ts";
import { orFailure, usageFailure } from "./failure.ts";
import { ACCOUNT, argument, flag, JSON_RESPONSE, option, REASON } from "./parameters.ts";
import { columnsOf, printResponse, tableOf } from "./print.ts";
import { command, type Row } from "./row.ts";
import { discount } from "./values.ts";

export const PRICES = `input as INPUT / 1M, cachedInput as CACHED / 1M, cacheWrite as CACHE WRITE / 1M, cacheWrite1h as 1 H / 1M,
  output as OUTPUT / 1M, reasoning as REASONING / 1M, image, request, tiers` as const;
const price = formatMicros;
const tierText = ({ aboveInputTokens, input, output }: PriceTier) =>
  `above ${aboveInputTokens}: ${formatMicros(input)} in, ${formatMicros(output)} out`;
export const priceTexts = {
  ...{ input: price, cachedInput: price, cacheWrite: price, cacheWrite1h: price, output: price, reasoning: price },
  ...{ image: price, request: price },
  tiers: (tiers: readonly PriceTier[]) => tiers.map(tierText).join("; "),
};

const columns = columnsOf(
  PriceVersionSchema,
  `version, effectiveFrom, ${PRICES}` as const,
  { "is the argument": "model" },
  priceTexts,
);
const accountColumns = columnsOf(
  AccountPricesSchema,
  `version, effectiveFrom, model, discountBps as DISCOUNT, ${PRICES}` as const,
  {},
  {
    ...priceTexts,
    model: (model) => model || "all",
    // A version without a discount and prices ends those before.
    discountBps: (bps, { prices }) => (bps === undefined ? (prices ? "" : "removed") : `${bps / 100} %`),
  },
);

const MODEL = "the id or an alias of the model";

export const row: Row = {
  ...list("listPrices", columns, {
    none: "The model has no prices.",
    fields: { model: argument("<model>", MODEL) },
    examples: ["acme-large", "acme-large --json", "set-account acct_… --discount 15%"],
  }),
  commands: {
    "set-account": command({
      about: "Give an account a discount, or prices of its own for a model. They apply from the next call.",
      parameters: {
        json: JSON_RESPONSE,
        accountId: ACCOUNT,
        model: option("--model <model>", `${MODEL} (default: all models)`),
        discountBps: option("--discount <percent>", "what is taken off each price, such as 15% or 12.5%", discount),
        file: option("--file <file>", "a YAML file with the prices of the model, in the form of models.yaml"),
        remove: flag("--remove", "end the discount or the prices that the account has", ["discount", "file"]),
        reason: REASON,
      },
      examples: ["acct_… --discount 15%", "acct_… --model acme-large --file prices.yaml", "acct_… --model acme-large --remove"],
      run: async ({ json, accountId, model, discountBps, file, remove, reason = "" }) => {
        if ([discountBps, file, remove || undefined].filter((one) => one !== undefined).length !== 1)
          throw usageFailure("the prices are missing; add one of --discount, --file and --remove");
        if (file !== undefined && model === undefined) throw usageFailure("--file needs --model: prices belong to one model");
        const own = file === undefined ? { case: undefined } : { case: "prices" as const, value: await pricesIn(file) };
        const change = discountBps === undefined ? own : { case: "discountBps" as const, value: discountBps };
        const request = { accountId, model: model ?? "", change, reason };
        const response = await withAdmin((admin) => admin.setAccountPrices(request));
        await printResponse(json, SetAccountPricesResponseSchema, response, () => tableOf(accountColumns, response.prices));
      },
    }),
    account: list("listAccountPrices", accountColumns, {
      about: "List the prices that an account got, latest first.",
      none: "The account has the prices of the models.",
      fields: { accountId: ACCOUNT },
      examples: ["acct_…"],
    }),
  },
};

/** The prices in a YAML file. */
export async function pricesIn(file: string): Promise<Prices> {
  const read = readFile(file, "utf8").then((text) => parsePrices(text, file));
  const { tiers, ...rates } = await orFailure(read);
  return create(PricesSchema, {
    ...rates,
    tiers: tiers.map((tier) => ({ ...tier, aboveInputTokens: BigInt(tier.aboveInputTokens) })),
  });
}
