/** A progress bar on a terminal. Elsewhere it prints nothing. */
export type Progress = { show(share: number, text: string): void; clear(): void };

type Terminal = Pick<NodeJS.WriteStream, "isTTY" | "write">;

const WIDTH = 30;
const ERASE_LINE = "\r\x1b[2K";

export function createProgress(terminal: Terminal): Progress {
  let shown = "";
  return {
    show: (share, text) => {
      const done = Math.round(Math.min(Math.max(share, 0), 1) * WIDTH);
      const line = `[${"#".repeat(done)}${" ".repeat(WIDTH - done)}] ${Math.floor(share * 100)} %  ${text}`;
      if (!terminal.isTTY || line === shown) return;
      shown = line;
      terminal.write(ERASE_LINE + line);
    },
    clear: () => {
      if (shown !== "") terminal.write(ERASE_LINE);
      shown = "";
    },
  };
}
