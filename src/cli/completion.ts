import type { Command, Option } from "commander";
import { printResult } from "./output.ts";
import { argument, flag } from "./parameters.ts";
import type { Row } from "./row.ts";

/** A command with everything that can follow it. */
type Node = {
  /** The words from "vx" to the command. */
  readonly path: string;
  readonly words: readonly Word[];
  /** The options that are followed by a value. */
  readonly valueOptions: readonly string[];
};

type Word = { readonly text: string; readonly description: string };

const SHELLS = { bash: bashScript, zsh: zshScript, fish: fishScript } as const;

/** All commands must be defined when the script is printed. */
export const row: Row = {
  examples: [
    "source <(vx completion bash)",
    "vx completion zsh > ~/.zfunc/_vx",
    "vx completion fish > ~/.config/fish/completions/vx.fish",
  ],
  parameters: {
    shell: argument("<shell>", "the shell", Object.keys(SHELLS)),
    json: flag("--json", "print the script as a JSON string"),
  },
  run: async ({ shell, json }, _, running) => {
    const script = SHELLS[shell as keyof typeof SHELLS](nodesOf(running.parent as Command, "vx"));
    await printResult(json === true, { shell, script }, script);
  },
};

function nodesOf(command: Command, path: string): Node[] {
  const options = command.createHelp().visibleOptions(command) as Option[];
  const words = [
    ...command.commands.map((one) => ({ text: one.name(), description: one.description() })),
    ...command.registeredArguments.flatMap(({ argChoices = [], description }) =>
      argChoices.map((text) => ({ text, description })),
    ),
    ...options.map((option) => ({ text: nameOf(option), description: option.description })),
  ];
  const valueOptions = options.filter(({ required }) => required).map(nameOf);
  const children = command.commands.flatMap((one) => nodesOf(one, `${path} ${one.name()}`));
  return [{ path, words, valueOptions }, ...children];
}

function nameOf({ long, short }: Option): string {
  return long ?? short ?? "";
}

const quoted = (texts: readonly string[]) => texts.map((text) => `"${text}"`).join("|");
const pathsOf = (nodes: readonly Node[]) => nodes.slice(1).map(({ path }) => path);
const valuesOf = (nodes: readonly Node[]) =>
  nodes.flatMap(({ path, valueOptions }) => valueOptions.map((option) => `${path} ${option}`));

/** Without a word of vx, such as after an option with a value, bash completes names of files. */
function bashScript(nodes: readonly Node[]): string {
  const cases = nodes.map(({ path, words }) => `    "${path}") words="${words.map(({ text }) => text).join(" ")}" ;;`);
  return `# bash completion of vx
_vx() {
  local at="vx" word words=""
  COMPREPLY=()
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "$at $word" in
      ${quoted(pathsOf(nodes))}) at="$at $word" ;;
    esac
  done
  case "$at \${COMP_WORDS[COMP_CWORD-1]}" in
    ${quoted(valuesOf(nodes))}) return ;;
  esac
  case "$at" in
${cases.join("\n")}
  esac
  COMPREPLY=($(compgen -W "$words" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _vx vx
`;
}

function zshScript(nodes: readonly Node[]): string {
  const itemOf = ({ text, description }: Word) => {
    const item = `${text}:${description.replaceAll(":", "\\:")}`;
    return `'${item.replaceAll("'", "'\\''")}'`;
  };
  const cases = nodes.map(({ path, words }) => `    ("${path}") items=(${words.map(itemOf).join(" ")}) ;;`);
  return `#compdef vx
_vx() {
  local at="vx" word
  local -a items
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "$at $word" in
      (${quoted(pathsOf(nodes))}) at="$at $word" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
    (${quoted(valuesOf(nodes))}) _files; return ;;
  esac
  case "$at" in
${cases.join("\n")}
  esac
  _describe vx items || _files
}
if [ "$funcstack[1]" = "_vx" ]; then _vx "$@"; else compdef _vx vx; fi
`;
}

function fishScript(nodes: readonly Node[]): string {
  const quote = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  const lines = nodes.flatMap(({ path, words, valueOptions }) =>
    words.map(({ text, description }) => {
      const isOption = text.startsWith("--");
      const word = isOption ? `-l ${text.slice(2)}` : `-f -a ${text}`;
      const value = valueOptions.includes(text) ? " -r" : "";
      return `complete -c vx -n ${quote(`__vx_at '${path}'`)} ${word}${value} -d ${quote(description)}`;
    }),
  );
  return `# fish completion of vx
function __vx_at
  set -l at vx
  for word in (commandline -opc)[2..]
    switch "$at $word"
      case ${pathsOf(nodes).map(quote).join(" ")}
        set at "$at $word"
    end
  end
  test "$at" = "$argv[1]"
end
${lines.join("\n")}
`;
}
