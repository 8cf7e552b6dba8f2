import type { HttpResponse } from "../http.ts";

type Cookie = {
  readonly name: string;
  readonly value: string;
  readonly sameSite: "Strict" | "Lax";
  readonly isSecure: boolean;
  /** 0 deletes the cookie. */
  readonly maxAgeSeconds: number;
};

/** Scripts cannot read the cookie, and it belongs to this host only. */
export function setCookie(response: HttpResponse, cookie: Cookie): void {
  const { name, value, sameSite, isSecure, maxAgeSeconds } = cookie;
  const secure = isSecure ? "; Secure" : "";
  const text = `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=${sameSite}${secure}`;
  const others = response.getHeader("set-cookie");
  response.setHeader("set-cookie", [...(Array.isArray(others) ? others : []), text]);
}
