import { readFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { Option } from "commander";
import type { SetAccountPricesRequest } from "../../gen/vx/admin/v1/admin_pb.js";
import { type Prices as PricesMessage, PricesSchema } from "../../gen/vx/v1/prices_pb.js";
import type { Prices } from "../domain/price.ts";
import { parsePrices } from "../models/models-file.ts";
import { ACCOUNT, discount } from "./arguments.ts";
import { callAndShow } from "./client.ts";
import { accountPriceColumns, priceVersionColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption, type ReasonOption, reasonOption, withExamples } from "./command.ts";
import { CommandFailure, usageFailure } from "./failure.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { tableOf } from "./print.ts";

type ChangeOptions = JsonOption &
  ReasonOption & {
    readonly model?: string;
    readonly discount?: number;
    readonly file?: string;
    readonly remove?: true;
  };

export const define: Define = (command) => {
  command.argument("<model>", "the id or an alias of the model");
  command.option("--json", "print the response message as JSON");
  addListOptions(
    withExamples(command, ["vx prices acme-large", "vx prices acme-large --json", "vx prices set-account acct_… --discount 15%"]),
  ).action(list);
  const setting = callCommand(
    command,
    "set-account",
    "Give an account a discount, or prices of its own for a model. They apply from the next call.",
    [
      "vx prices set-account acct_… --discount 15%",
      "vx prices set-account acct_… --model acme-large --file prices.yaml",
      "vx prices set-account acct_… --model acme-large --remove",
    ],
  );
  setting
    .argument("<account>", ACCOUNT)
    .option("--model <model>", "the id or an alias of the model (default: all models)")
    .option("--discount <percent>", "what is taken off each price, such as 15% or 12.5%", discount)
    .option("--file <file>", "a YAML file with the prices of the model, in the form of models.yaml")
    .addOption(new Option("--remove", "end the discount or the prices that the account has").conflicts(["discount", "file"]))
    .action(set);
  reasonOption(setting);
  addListOptions(
    callCommand(command, "account", "List the prices that an account got, latest first.", ["vx prices account acct_…"]),
  )
    .argument("<account>", ACCOUNT)
    .action(listOfAccount);
};

async function list(model: string, options: ListOptions): Promise<void> {
  await callAndPrintList(options, "listPrices", {
    request: { model },
    rows: (page) => page.versions,
    columns: priceVersionColumns,
    none: "The model has no prices.",
  });
}

async function listOfAccount(accountId: string, options: ListOptions): Promise<void> {
  await callAndPrintList(options, "listAccountPrices", {
    request: { accountId },
    rows: (page) => page.versions,
    columns: accountPriceColumns,
    none: "The account has the prices of the models.",
  });
}

async function set(accountId: string, options: ChangeOptions): Promise<void> {
  const { model = "", reason = "" } = options;
  const request = { accountId, model, change: await changeOf(options), reason };
  await callAndShow(options, "setAccountPrices", request, ({ prices }) => tableOf(accountPriceColumns, prices));
}

async function changeOf({ model, discount: bps, file, remove }: ChangeOptions): Promise<SetAccountPricesRequest["change"]> {
  if ([bps, file, remove].filter((one) => one !== undefined).length !== 1)
    throw usageFailure("the prices are missing; add one of --discount, --file and --remove");
  if (bps !== undefined) return { case: "discountBps", value: bps };
  if (file === undefined) return { case: undefined };
  if (model === undefined) throw usageFailure("--file needs --model: prices belong to one model");
  return { case: "prices", value: pricesMessage(await pricesIn(file)) };
}

/** The prices in a YAML file. */
export async function pricesIn(file: string): Promise<Prices> {
  try {
    return parsePrices(await readFile(file, "utf8"), file);
  } catch (error) {
    throw new CommandFailure((error as Error).message);
  }
}

export function pricesMessage({ tiers, ...rates }: Prices): PricesMessage {
  const messages = tiers.map((tier) => ({ ...tier, aboveInputTokens: BigInt(tier.aboveInputTokens) }));
  return create(PricesSchema, { ...rates, tiers: messages });
}
