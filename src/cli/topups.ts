import { type Command, Option } from "commander";
import type { PutAutoTopUpResponse } from "../../gen/vx/admin/v1/admin_pb.js";
import type { Micros } from "../domain/money.ts";
import { ACCOUNT, positiveAmount } from "./arguments.ts";
import { callAndShow } from "./client.ts";
import { autoTopUpColumns, topUpColumns } from "./columns.ts";
import { callCommand, type Define, type JsonOption, type ReasonOption, reasonOption, requiredOption } from "./command.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { tableOf } from "./print.ts";

export const define: Define = (group) => {
  addListOptions(
    callCommand(group, "list", "List top-ups, the newest first.", [
      "vx topups list --account acme",
      "vx topups list --problems",
      "vx topups list --state disputed",
    ])
      .option("--account <account>", "only top-ups of this account")
      .option("--problems", "only top-ups whose payment differs from them, and was not credited")
      .addOption(
        new Option("--state <state>", "only top-ups with this state").choices([
          "pending",
          "paid",
          "failed",
          "expired",
          "refunded",
          "disputed",
        ]),
      ),
  ).action(list);
  ofAccount(group, "auto", "Show the automatic top-ups of an account.", ["vx topups auto acme"]).action(get);
  const set = ofAccount(group, "set-auto", "Start or change the automatic top-ups of an account.", [
    "vx topups set-auto acct_… --threshold 10.00 --amount 25.00 --monthly-max 100.00",
  ]);
  requiredOption(set, "--threshold <amount>", "top up when a charge takes the balance below it", positiveAmount("--threshold"));
  requiredOption(set, "--amount <amount>", "the amount of each top-up", positiveAmount("--amount"));
  requiredOption(
    set,
    "--monthly-max <amount>",
    "what they add up to at most in a month, in UTC",
    positiveAmount("--monthly-max"),
  );
  reasonOption(
    set.option("--replace-payment-method", "ask for a page on which the customer stores another payment method"),
  ).action(put);
  reasonOption(ofAccount(group, "stop-auto", "Stop the automatic top-ups of an account.", ["vx topups stop-auto acct_…"])).action(
    stop,
  );
};

function ofAccount(group: Command, name: string, description: string, examples: readonly string[]): Command {
  return callCommand(group, name, description, examples).argument("<account>", ACCOUNT);
}

type Filter = { readonly account?: string; readonly problems?: boolean; readonly state?: string };

async function list(options: ListOptions & Filter): Promise<void> {
  const { account: accountId = "", problems: onlyProblems = false, state = "" } = options;
  await callAndPrintList(options, "listTopUps", {
    request: { accountId, onlyProblems, state },
    rows: (page) => page.topups,
    columns: topUpColumns,
    none: "There are no such top-ups.",
  });
}

async function get(accountId: string, options: JsonOption): Promise<void> {
  await callAndShow(options, "getAutoTopUp", { accountId }, show);
}

type Settings = {
  readonly threshold: Micros;
  readonly amount: Micros;
  readonly monthlyMax: Micros;
  readonly replacePaymentMethod?: true;
};

async function put(accountId: string, options: JsonOption & ReasonOption & Settings): Promise<void> {
  const { threshold, amount, monthlyMax, replacePaymentMethod = false, reason = "" } = options;
  const request = {
    accountId,
    enabled: true,
    thresholdMicros: threshold,
    amountMicros: amount,
    monthlyMaxMicros: monthlyMax,
    replacePaymentMethod,
    reason,
  };
  await callAndShow(options, "putAutoTopUp", request, show);
}

async function stop(accountId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "putAutoTopUp", { accountId, enabled: false, reason }, show);
}

function show({ autoTopup }: Pick<PutAutoTopUpResponse, "autoTopup">): string {
  return tableOf(autoTopUpColumns, autoTopup);
}
