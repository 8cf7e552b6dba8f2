import { type JsonRequest, sendJson } from "../rest/send-json.ts";

/** The same as sendJson for tests that read JSON of different methods. */
// biome-ignore lint/suspicious/noExplicitAny: the type of the JSON depends on the method
export const sendAnyJson: (url: string, request: JsonRequest) => Promise<{ status: number; body: any }> = sendJson;
