import { execFile } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { beforeAll, describe, expect, test } from "vitest";
import { useTestApp } from "../support/app.ts";
import { clientEnv } from "../support/client-env.ts";
import { clientExample } from "../support/client-examples.ts";
import { CLIENTS, installPackages } from "../support/installed.ts";
import { createVenv, problemOf, pythonEnv } from "../support/python.ts";
import { createTemporaryFolder } from "../support/temporary-folder.ts";

const VENV = join(CLIENTS, "agents-venv");
const PROGRAMS = join(CLIENTS, "agents");
const REPLY = /This is a reply of the sandbox\./;
/** The clients import large packages, and the programs index their folder first. */
const TIMEOUT_MS = 180_000;

/** VX_AGENTS=python selects some of them. */
const selected = process.env.VX_AGENTS?.split(",");

const run = promisify(execFile);
const missing = {
  python: problemWith("python", () => createVenv(VENV, "test/agents/python/requirements.txt")),
  programs: problemWith("programs", installPrograms),
};
for (const [what, problem] of Object.entries(missing)) {
  if (problem) console.error(`SKIPPED: no agents were tested (${what}). ${problem}`);
}

function problemWith(what: string, install: () => string | undefined): string | undefined {
  return selected === undefined || selected.includes(what) ? install() : `VX_AGENTS does not name "${what}".`;
}

/** npm may leave out the script that puts the program of the platform in its place. */
function installPrograms(): string | undefined {
  const script = join(PROGRAMS, "node_modules/@anthropic-ai/claude-code/install.cjs");
  return installPackages("test/agents/programs", PROGRAMS) ?? problemOf(process.execPath, script);
}

let keys: Record<string, string>;

const app = useTestApp();
beforeAll(async () => {
  keys = await clientEnv(app);
});

const atThisServer = (code: string) => code.replaceAll("http://127.0.0.1:8080", app.url);

describe.skipIf(missing.python)("libraries for Python", () => {
  // Without it, litellm downloads a list of prices.
  const env = () => pythonEnv({ ...keys, LITELLM_LOCAL_MODEL_COST_MAP: "True" }, VENV);

  // In one process, because each library takes seconds to load.
  test.each([
    ["langchain", "from langchain_openai"],
    ["langchain_anthropic", "from langchain_anthropic"],
    ["instructor", "import instructor"],
    ["llama_index", "from llama_index"],
    ["litellm", "import litellm, os"],
    ["litellm_anthropic", 'model="anthropic/'],
    ["pydantic_ai", "from pydantic_ai"],
    ["strands", "from strands"],
  ])(
    "%s calls tools, returns objects and streams, and its example in docs/clients.md prints a reply",
    { timeout: TIMEOUT_MS },
    async (name, words) => {
      const example = atThisServer(clientExample("python", words));
      const tests = `import runpy, sys
sys.argv = ["test/agents/python/${name}_client.py"]
runpy.run_path(sys.argv[0], run_name="__main__")`;
      const { stdout, stderr } = await run("python", ["-c", `${example}\n${tests}`], { env: env() });
      expect(stdout.trim()).not.toBe("");
      expect(stderr).toMatch(/Ran [1-9]\d* tests? in .*\n\nOK\n$/);
    },
  );
});

describe.skipIf(missing.programs)("programs", () => {
  /** Runs a program in a home folder with these files. */
  async function runIn(files: Record<string, string>, program: string, args: string[], extra = {}) {
    const folder = createTemporaryFolder("agent");
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(folder.path, path, ".."), { recursive: true });
      writeFileSync(join(folder.path, path), atThisServer(text));
    }
    try {
      const call = run(resolve(PROGRAMS, "node_modules/.bin", program), args, {
        cwd: folder.path,
        env: {
          ...process.env,
          ...keys,
          HOME: folder.path,
          // opencode reads its folder from there.
          PWD: folder.path,
          XDG_CONFIG_HOME: join(folder.path, ".config"),
          ...extra,
        },
      });
      call.child.stdin?.end();
      return (await call).stdout;
    } finally {
      folder.remove();
    }
  }

  test("Claude Code calls a tool and prints the reply", { timeout: TIMEOUT_MS }, async () => {
    const settings = clientExample("json", "ANTHROPIC_BASE_URL");
    const args = ["--print", "[[tool=Read]] hello", "--output-format", "json"];
    const output = await runIn({ ".claude/settings.json": settings }, "claude", args, { ANTHROPIC_API_KEY: keys.VX_KEY });
    expect(JSON.parse(output)).toMatchObject({ is_error: false, num_turns: 2, result: expect.stringMatching(REPLY) });
  });

  test("the variables for Claude Code in docs/clients.md select the server", { timeout: TIMEOUT_MS }, async () => {
    const script = clientExample("sh", "ANTHROPIC_BASE_URL").replace(/\nclaude$/m, '\nexec "$CLAUDE" --print hello');
    const program = join(PROGRAMS, "node_modules/.bin/claude");
    const output = await runIn({ "start.sh": script }, "/bin/sh", ["start.sh"], { CLAUDE: program });
    expect(output).toMatch(REPLY);
  });

  test("Codex calls a tool and prints the reply", { timeout: TIMEOUT_MS }, async () => {
    const config = clientExample("toml", "model_provider");
    const args = ["exec", "--json", "--skip-git-repo-check", "[[tool=get_goal]] hello"];
    const output = await runIn({ ".codex/config.toml": config }, "codex", args);
    expect(output).toMatch(REPLY);
    expect(output).toMatch(/"output_tokens":[1-9]/);
  });

  test("opencode calls a tool and prints the reply", { timeout: TIMEOUT_MS }, async () => {
    const config = clientExample("json", "opencode.ai");
    const args = ["run", "--format", "json", "[[tool=read]]hello"];
    const output = await runIn({ "opencode.json": config }, "opencode", args);
    expect(output).toMatch(/"type":"tool_use"/);
    expect(output).toMatch(REPLY);
  });
});
