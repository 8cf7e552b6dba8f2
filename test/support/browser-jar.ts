import { type RawAnswer, sendHttp1 } from "./raw.ts";

/** Sends requests with the cookies that each host has set, and follows no redirect. */
export class BrowserJar {
  readonly #cookies = new Map<string, Map<string, string>>();

  /** A navigation to the URL. */
  async get(url: string, method = "GET"): Promise<RawAnswer> {
    const { origin, pathname, search } = new URL(url);
    const cookie = this.header(origin);
    const answer = await sendHttp1(origin, { method, path: `${pathname}${search}`, headers: cookie === "" ? {} : { cookie } });
    // Node joins repeated headers.
    for (const text of (answer.headers["set-cookie"] ?? "").split(/,(?=[\w.]+=)/)) this.#set(origin, text);
    return answer;
  }

  /** Follows redirects until one leads to a URL with this start, and returns that URL. */
  async follow(url: string, end: string): Promise<string> {
    let at = url;
    for (let steps = 0; steps < 10; steps++) {
      const { headers, status, body } = await this.get(at);
      if (headers.location === undefined) throw new Error(`${at}: ${status} ${body.toString()}`);
      at = new URL(headers.location, at).href;
      if (at.startsWith(end)) return at;
    }
    throw new Error("too many redirects");
  }

  header(origin: string): string {
    return [...(this.#cookies.get(origin) ?? [])].map(([name, value]) => `${name}=${value}`).join("; ");
  }

  forget(origin: string): void {
    this.#cookies.delete(origin);
  }

  #set(origin: string, text: string): void {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(text) ?? [];
    if (name === "") return;
    const jar = this.#cookies.get(origin) ?? new Map<string, string>();
    this.#cookies.set(origin, jar);
    if (/;\s*max-age=0(;|$)|;\s*expires=thu, 01 jan 1970/i.test(text)) jar.delete(name);
    else jar.set(name, value);
  }
}
