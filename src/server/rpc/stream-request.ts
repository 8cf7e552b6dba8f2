import type { IncomingHttpHeaders, ServerHttp2Stream } from "node:http2";

/** The request of an HTTP/2 stream, with the members that calls and bodies use of a request of node:http. */
export class StreamRequest {
  readonly stream: ServerHttp2Stream;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: string[];

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[]) {
    this.stream = stream;
    this.headers = headers;
    this.rawHeaders = rawHeaders;
  }

  get url(): string {
    return this.headers[":path"] ?? "";
  }

  get aborted(): boolean {
    return this.stream.aborted;
  }

  get destroyed(): boolean {
    return this.stream.destroyed;
  }

  get readableEnded(): boolean {
    return this.stream.readableEnded;
  }

  on(event: string, listener: (chunk: Buffer) => void): void {
    this.stream.on(event, listener);
  }

  pause(): void {
    this.stream.pause();
  }
}
