import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from "./failure.ts";
import { printError, surviveClosedOutput, visible } from "./output.ts";
import { define, type Row } from "./row.ts";
import { type Shell, setShell, shell } from "./shell.ts";

/** What each noun is for, and its row, which is loaded only when it is used: the server and the client are large. */
const NOUNS: Readonly<Record<string, readonly [about: string, load: () => Promise<{ readonly row: Row }>]>> = {
  serve: ["Start the server.", () => import("./serve-command.ts")],
  migrate: ["Migrate the schema of DATABASE_URL, or of all cells of VX_CELLS.", () => import("./migrate.ts")],
  doctor: [
    "Check the database, disk, models, upstreams, certificates and payments of the server, with its settings. Exits with 1 on a problem.",
    () => import("./doctor.ts"),
  ],
  payments: ["Set up payments at Stripe, with the settings of the server.", () => import("./payments.ts")],
  cells: ["Show the cells that share the accounts.", () => import("./cells.ts")],
  backup: ["Back up and restore the embedded database.", () => import("./backup.ts")],
  archive: ["Move old months of the ledger to compressed files.", () => import("./archive.ts")],
  "copy-database": [
    "Copy the embedded database to a PostgreSQL of your own. The server must be stopped.",
    () => import("./copy-database.ts"),
  ],
  accounts: ["Manage accounts and their balances.", () => import("./accounts.ts")],
  keys: ["Manage API keys.", () => import("./keys.ts")],
  limits: ["Manage limits of cost, tokens, generations and running generations.", () => import("./limits.ts")],
  plans: ["Manage plans, the limits of keys.", () => import("./plans.ts")],
  models: ["List the models of the server.", () => import("./models.ts")],
  prices: [
    "List the price versions of a model, and give accounts discounts or prices of their own.",
    () => import("./prices.ts"),
  ],
  rerate: ["Compare charges with other prices of a model, and correct them.", () => import("./rerate.ts")],
  ledger: ["List the ledger entries of an account, and refund them.", () => import("./ledger.ts")],
  usage: ["Show and export the usage of accounts.", () => import("./usage.ts")],
  events: ["List and watch the events of accounts.", () => import("./events.ts")],
  failures: ["List the calls of an account that failed.", () => import("./failures.ts")],
  topups: ["List the payments of customers, and set automatic ones.", () => import("./topups.ts")],
  webhooks: ["Manage the endpoints that receive events, and their deliveries.", () => import("./webhooks.ts")],
  members: ["Manage who works with an account on the customer page.", () => import("./members.ts")],
  operators: ["Manage operators and their tokens.", () => import("./operators.ts")],
  log: ["List what operators changed.", () => import("./log.ts")],
  completion: ["Print a script that completes commands and options in a shell.", () => import("./completion.ts")],
  audit: [
    "Recompute all balances, usage sums and hashes from the ledger and the operator log. Exits with 1 if any differ.",
    () => import("./audit.ts"),
  ],
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
  for (const [name, [about, load]] of Object.entries(NOUNS)) {
    const command = program.command(name).description(about);
    // A completion contains all commands.
    if (args.includes(name) || args.includes("completion")) define(command, (await load()).row);
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
