import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import type { Define } from "./command.ts";
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from "./failure.ts";
import { printError, surviveClosedOutput, visible } from "./output.ts";
import { type Shell, setShell, shell } from "./shell.ts";

type Group = { readonly description: string; readonly load: () => Promise<{ readonly define: Define }> };

/** Each group is loaded only when used, because the server and the client are large. */
const GROUPS: Readonly<Record<string, Group>> = {
  serve: { description: "Start the server.", load: () => import("./serve-command.ts") },
  migrate: {
    description: "Migrate the schema of DATABASE_URL, or of all cells of VX_CELLS.",
    load: () => import("./migrate.ts"),
  },
  doctor: {
    description:
      "Check the database, disk, models, upstreams, certificates and payments of the server, with its settings. Exits with 1 on a problem.",
    load: () => import("./doctor.ts"),
  },
  payments: {
    description: "Set up payments at Stripe, with the settings of the server.",
    load: () => import("./payments.ts"),
  },
  cells: { description: "Show the cells that share the accounts.", load: () => import("./cells.ts") },
  backup: {
    description: "Back up and restore the embedded database.",
    load: () => import("./backup.ts"),
  },
  archive: {
    description: "Move old months of the ledger to compressed files.",
    load: () => import("./archive.ts"),
  },
  "copy-database": {
    description: "Copy the embedded database to a PostgreSQL of your own. The server must be stopped.",
    load: () => import("./copy-database.ts"),
  },
  accounts: { description: "Manage accounts and their balances.", load: () => import("./accounts.ts") },
  keys: { description: "Manage API keys.", load: () => import("./keys.ts") },
  limits: {
    description: "Manage limits of cost, tokens, generations and running generations.",
    load: () => import("./limits.ts"),
  },
  plans: { description: "Manage plans, the limits of keys.", load: () => import("./plans.ts") },
  models: { description: "List the models of the server.", load: () => import("./models.ts") },
  prices: {
    description: "List the price versions of a model, and give accounts discounts or prices of their own.",
    load: () => import("./prices.ts"),
  },
  rerate: {
    description: "Compare charges with other prices of a model, and correct them.",
    load: () => import("./rerate.ts"),
  },
  ledger: {
    description: "List the ledger entries of an account, and refund them.",
    load: () => import("./ledger.ts"),
  },
  usage: { description: "Show and export the usage of accounts.", load: () => import("./usage.ts") },
  events: { description: "List and watch the events of accounts.", load: () => import("./events.ts") },
  failures: { description: "List the calls of an account that failed.", load: () => import("./failures.ts") },
  topups: {
    description: "List the payments of customers, and set automatic ones.",
    load: () => import("./topups.ts"),
  },
  webhooks: {
    description: "Manage the endpoints that receive events, and their deliveries.",
    load: () => import("./webhooks.ts"),
  },
  members: {
    description: "Manage who works with an account on the customer page.",
    load: () => import("./members.ts"),
  },
  operators: {
    description: "Manage operators and their tokens.",
    load: () => import("./operators.ts"),
  },
  log: {
    description: "List what operators changed.",
    load: () => import("./log.ts"),
  },
  completion: {
    description: "Print a script that completes commands and options in a shell.",
    load: () => import("./completion.ts"),
  },
  audit: {
    description:
      "Recompute all balances, usage sums and hashes from the ledger and the operator log. Exits with 1 if any differ.",
    load: () => import("./audit.ts"),
  },
};

const NOTES = `
Examples:
  vx serve
  vx accounts create --name acme --plan pro
  vx accounts credit acct_… 25.00 --reason "invoice 1001"
  vx --url https://ops.example:8081 accounts list

Environment variables of the commands that call a server:
  VX_ADMIN_HOST, VX_ADMIN_PORT  the address of the operator listener (default: 127.0.0.1, 8081)
  VX_ADMIN_URL                  the address as a URL, such as https://ops.example:8081
  VX_ADMIN_TLS_CERT             the certificate of the listener; if set, no other certificate is trusted
  VX_ADMIN_TOKEN                the token of an operator (default: the file admin-token in VX_DATA_DIR)
  VX_ADMIN_TOKEN_FILE           a file whose first line is the token
  VX_DATA_DIR                   the data folder of the server (default: .vx)

Exit codes: 0 success, 1 failure, 2 wrong usage, 70 violated invariant (see docs/operations.md).
`;

/** Runs a command and sets the exit code, so that all output is written before the process exits. */
export async function run(args: readonly string[], process: Shell): Promise<void> {
  setShell(process);
  surviveClosedOutput();
  try {
    const program = await createProgram(args);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    shell.exitCode = await tell(error);
  }
}

export async function createProgram(args: readonly string[]): Promise<Command> {
  const program = new Command("vx")
    .description("vx is a paid, metered generation API in front of your models. This program starts the server and manages it.")
    .version(version())
    .option("--url <url>", "the operator listener, such as https://ops.example:8081 (default: VX_ADMIN_URL)")
    .hook("preAction", (root) => {
      const { url } = root.opts<{ url?: string }>();
      if (url !== undefined) shell.env.VX_ADMIN_URL = url;
    })
    .exitOverride()
    // Options after a command belong to the command, not to vx.
    .enablePositionalOptions()
    .showHelpAfterError("(--help shows the usage and examples)")
    // Gives Commander's errors the prefix of every other message of vx.
    .configureOutput({
      writeOut: (text) => shell.stdout.write(text),
      writeErr: (text) => shell.stderr.write(text),
      getOutHelpWidth: () => shell.stdout.columns as number,
      getErrHelpWidth: () => shell.stderr.columns as number,
      outputError: (text, write) => write(text.replace(/^error: /, "vx: ")),
    })
    .addHelpText("after", NOTES);
  for (const [name, { description, load }] of Object.entries(GROUPS)) {
    const command = program.command(name).description(description);
    // A completion contains all commands.
    if (args.includes(name) || args.includes("completion")) (await load()).define(command);
  }
  return program;
}

/** Prints the error and returns the exit code. */
async function tell(error: unknown): Promise<number> {
  // Commander has already printed its message. Requested help is not an error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_USAGE;
  const message = error instanceof Error ? error.message : String(error);
  await printError(`vx: ${visible(message)}`);
  return error instanceof CommandFailure ? error.exitCode : EXIT_FAILED;
}

function version(): string {
  const file = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(file) as { version: string }).version;
}
