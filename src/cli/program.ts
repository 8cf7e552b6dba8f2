import { readFileSync } from "node:fs";
import { Command, CommanderError } from "commander";
import type { Define } from "./command.ts";
import { EXIT_FAILED, EXIT_USAGE } from "./exit.ts";
import { CommandFailure } from "./failure.ts";
import { printError, surviveClosedOutput } from "./output.ts";
import { visible } from "./visible.ts";

type Group = { readonly description: string; readonly load: () => Promise<{ readonly define: Define }> };

/** Loads only the command that is run: the server and the client are large. */
const GROUPS: Readonly<Record<string, Group>> = {
  serve: { description: "Run the server until a signal stops it.", load: () => import("./serve-command.ts") },
  migrate: {
    description: "Bring the schema of DATABASE_URL up to date.",
    load: () => import("./migrate.ts"),
  },
  accounts: { description: "Customers and their prepaid balances.", load: () => import("./accounts.ts") },
  keys: { description: "API keys.", load: () => import("./keys.ts") },
  plans: { description: "What the keys on a plan may do.", load: () => import("./plans.ts") },
  models: { description: "The models that are served.", load: () => import("./models.ts") },
  ledger: { description: "Every movement of a balance.", load: () => import("./ledger.ts") },
  audit: {
    description: "Recompute every balance from the ledger; exit 1 if one differs.",
    load: () => import("./audit.ts"),
  },
};

const NOTES = `
Examples:
  vx serve
  vx accounts create --name acme --plan pro
  vx accounts credit acct_… 25.00 --reason "invoice 1001"

Settings of the commands that call a server:
  VX_ADMIN_HOST, VX_ADMIN_PORT  where its operator listener is (default: 127.0.0.1, 8081)
  VX_ADMIN_URL                  the same as one address, such as https://ops.example:8081
  VX_ADMIN_TLS_CERT             the certificate of the listener; if it is set, only this one is trusted
  VX_ADMIN_TOKEN                the operator token; if it is not set, the file admin-token in VX_DATA_DIR
  VX_DATA_DIR                   the data folder of the server (default: .vx)

Exit codes: 0 done, 1 refused or failed, 2 wrong usage.
`;

/** Runs a command and sets the exit code, so that all output is written before the process exits. */
export async function runCommandLine(args: string[]): Promise<void> {
  surviveClosedOutput();
  try {
    const program = await createProgram(args);
    await program.parseAsync(args, { from: "user" });
  } catch (error) {
    process.exitCode = await tell(error);
  }
}

async function createProgram(args: readonly string[]): Promise<Command> {
  const program = new Command("vx")
    .description(
      "A paid, metered generation API in front of your models: its server, and the tools of its operator.",
    )
    .version(version())
    .exitOverride()
    // Options after a command belong to the command, not to vx.
    .enablePositionalOptions()
    .showHelpAfterError("(--help shows the usage and examples)")
    // Gives Commander's errors the prefix of every other message of vx.
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, "vx: ")) })
    .addHelpText("after", NOTES);
  for (const [name, { description, load }] of Object.entries(GROUPS)) {
    const command = program.command(name).description(description);
    if (args.includes(name)) (await load()).define(command);
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
