import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import { CommandFailure, EXIT_FAILED, EXIT_USAGE } from "./failure.ts";
import { printError, surviveClosedOutput, visible } from "./output.ts";
import { define, type Row } from "./row.ts";
import { type Shell, setShell, shell } from "./shell.ts";

/** What each noun is for, and its row, which is loaded only when it is used: the server and the client are large. */
const NOUNS: Readonly<Record<string, readonly [about: string, load: () => Promise<Row>]>> = {
  serve: ["Start the server.", async () => (await import("./serve-command.ts")).serve],
  migrate: [
    "Migrate the schema of DATABASE_URL, or of all cells of VX_CELLS.",
    async () => (await import("./migrate.ts")).migration,
  ],
  doctor: [
    "Check the database, disk, models, upstreams, certificates and payments of the server, with its settings. Exits with 1 on a problem.",
    async () => (await import("./doctor.ts")).doctor,
  ],
  payments: ["Set up payments at Stripe, with the settings of the server.", async () => (await import("./payments.ts")).payments],
  cells: ["Show the cells that share the accounts.", async () => (await import("./cells.ts")).cells],
  backup: ["Back up and restore the embedded database.", async () => (await import("./backup.ts")).backup],
  archive: ["Move old months of the ledger to compressed files.", async () => (await import("./archive.ts")).archive],
  "copy-database": [
    "Copy the embedded database to a PostgreSQL of your own. The server must be stopped.",
    async () => (await import("./copy-database.ts")).copyDatabase,
  ],
  accounts: ["Manage accounts and their balances.", async () => (await import("./accounts.ts")).accounts],
  keys: ["Manage API keys.", async () => (await import("./keys.ts")).keys],
  limits: [
    "Manage limits of cost, tokens, generations and running generations.",
    async () => (await import("./limits.ts")).limits,
  ],
  plans: ["Manage plans, the limits of keys.", async () => (await import("./plans.ts")).plans],
  models: ["List the models of the server.", async () => (await import("./models.ts")).models],
  prices: [
    "List the price versions of a model, and give accounts discounts or prices of their own.",
    async () => (await import("./prices.ts")).prices,
  ],
  rerate: ["Compare charges with other prices of a model, and correct them.", async () => (await import("./rerate.ts")).rerate],
  ledger: ["List the ledger entries of an account, and refund them.", async () => (await import("./ledger.ts")).ledger],
  usage: ["Show and export the usage of accounts.", async () => (await import("./usage.ts")).usage],
  events: ["List and watch the events of accounts.", async () => (await import("./events.ts")).events],
  failures: ["List the calls of an account that failed.", async () => (await import("./failures.ts")).failures],
  topups: ["List the payments of customers, and set automatic ones.", async () => (await import("./topups.ts")).topups],
  webhooks: [
    "Manage the endpoints that receive events, and their deliveries.",
    async () => (await import("./webhooks.ts")).webhooks,
  ],
  members: ["Manage who works with an account on the customer page.", async () => (await import("./members.ts")).members],
  operators: ["Manage operators and their tokens.", async () => (await import("./operators.ts")).operators],
  log: ["List what operators changed.", async () => (await import("./log.ts")).log],
  completion: [
    "Print a script that completes commands and options in a shell.",
    async () => (await import("./completion.ts")).completion,
  ],
  audit: [
    "Recompute all balances, usage sums and hashes from the ledger and the operator log. Exits with 1 if any differ.",
    async () => (await import("./audit.ts")).audit,
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
    if (args.includes(name) || args.includes("completion")) define(command, await load());
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
