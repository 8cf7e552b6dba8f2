import { type JsonRequest, sendJson } from "../rest/send-json.ts";

/** The same as sendJson for tests that read JSON of different methods. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the JSON depends on the method
export const sendAnyJson: (url: string, request: JsonRequest) => Promise<{ status: number; body: any }> = sendJson;

/** Posts JSON with a key. A stream of events has no JSON. */
export async function post(server: { url: string }, key: { secret: string }, path: string, body: object, more: object = {}) {
  const headers = { authorization: `Bearer ${key.secret}`, "content-type": "application/json", ...more };
  const answer = await fetch(server.url + path, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await answer.text();
  const header = (name: string) => answer.headers.get(name);
  return { status: answer.status, header, text, json: text.startsWith("{") ? JSON.parse(text) : undefined };
}
