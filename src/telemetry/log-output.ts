/** Limit of the buffer while the reader of the stream stalls. */
const MAX_WAITING_CHARACTERS = 8 * 1024 * 1024;

/**
 * Writes log lines to a stream of the process, one write per turn of the event loop. A pipe whose reader
 * stalls does not block the process, because Node opens it non-blocking. Lines beyond the limit, and lines
 * that cannot be written (a full disk, a closed pipe), are dropped. The stream stays open, so logging resumes
 * when writing is possible again.
 */
export class LogOutput {
  readonly #stream: NodeJS.WriteStream;
  #waiting = "";
  #isWriting = false;
  #flushed: (() => void)[] = [];

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream;
    // The callback of the write also gets the error; without a listener the event would end the process.
    stream.on("error", () => undefined);
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > MAX_WAITING_CHARACTERS) return;
    this.#waiting += line;
    if (this.#isWriting) return;
    this.#isWriting = true;
    setImmediate(() => this.#send());
  }

  /** Calls back when no line is waiting any more. */
  flush(done: () => void): void {
    if (this.#isWriting) this.#flushed.push(done);
    else done();
  }

  #send(): void {
    const text = this.#waiting;
    this.#waiting = "";
    this.#stream.write(text, () => {
      if (this.#waiting !== "") {
        setImmediate(() => this.#send());
        return;
      }
      this.#isWriting = false;
      for (const done of this.#flushed.splice(0)) done();
    });
  }
}
