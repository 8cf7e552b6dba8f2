import { Code, ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import {
  type AccountOfPerson,
  type ClosedAccount,
  type GetSessionResponse,
  AccountService as PageService,
} from "../../gen/vx/account/v1/account_pb.js";
import { createSession } from "../shared/session.ts";

/** The part of the address with the token of a link, by which the page was opened. */
export type Link = { readonly section: "invitation" | "sign-up" | "view"; readonly token: string };

/** Starts the sign-in, and returns to the page. */
export const SIGN_IN = "/account/auth/sign-in";

const LINK = "vx.link";
const ACCOUNT = "vx.account";

/**
 * The calls of a person: those of vx.v1 have paths below that of the page's service, because browsers send the cookie only there. The
 * account is undefined for methods of the person alone. `onMissing` is called when something was not found, which can be the account.
 */
export function personTransport(
  accountId: string | undefined,
  onEnd: (message: string) => void,
  onMissing = () => {},
): Transport {
  const route: Interceptor = (next) => async (request) => {
    if (accountId !== undefined) request.header.set("x-vx-account", accountId);
    const isOwn = request.service === PageService;
    const url = isOwn ? request.url : `${location.origin}/${PageService.typeName}${new URL(request.url).pathname}`;
    try {
      return await next({ ...request, url } as typeof request);
    } catch (error) {
      if (ConnectError.from(error).code === Code.NotFound) onMissing();
      throw error;
    }
  };
  return createSession(undefined, onEnd, [route]);
}

/** Who is signed in; undefined if nobody is. */
export async function readPerson(): Promise<GetSessionResponse | undefined> {
  const { getSession } = createClient(
    PageService,
    personTransport(undefined, () => {}),
  );
  try {
    return await getSession({});
  } catch (error) {
    if (ConnectError.from(error).code === Code.Unauthenticated) return undefined;
    throw error;
  }
}

/** Starts the view of an operator. Returns whether the server accepted the link. */
export async function startView(token: string): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch("/account/auth/view", {
    method: "POST",
    headers,
    credentials: "same-origin",
    redirect: "error",
  });
  return response.ok;
}

/** Starts a session of the owner of the demo account, which the server permits only to callers of its own machine. */
export async function startDemo(): Promise<boolean> {
  const init = { method: "POST", credentials: "same-origin", redirect: "error" } as const;
  return (await fetch("/account/auth/demo", init)).ok;
}

/** Takes the token of a link out of the address, so that it is in no history. It is kept over the sign-in. */
export function takeLink(): Link | undefined {
  const [section = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
  const token = new URLSearchParams(query).get("token");
  if (token !== null && (section === "invitation" || section === "sign-up" || section === "view")) {
    history.replaceState(null, "", "/account");
    if (section === "view") return { section, token };
    sessionStorage.setItem(LINK, JSON.stringify({ section, token }));
  }
  const stored = sessionStorage.getItem(LINK);
  return stored === null ? undefined : (JSON.parse(stored) as Link);
}

export function forgetLink(): void {
  sessionStorage.removeItem(LINK);
}

/** The account that the person chose last, or the only one. */
export function chosenAccount({ accounts }: GetSessionResponse): AccountOfPerson | undefined {
  const chosen = localStorage.getItem(ACCOUNT);
  return accounts.find(({ id }) => id === chosen) ?? (accounts.length === 1 ? accounts[0] : undefined);
}

/** The account that the person chose last, or the only one, if it was closed. */
export function closedAccount({ accounts, closedAccounts }: GetSessionResponse): ClosedAccount | undefined {
  const chosen = localStorage.getItem(ACCOUNT);
  return closedAccounts.find(({ id }) => id === chosen) ?? (accounts.length === 0 ? closedAccounts[0] : undefined);
}

export function chooseAccount(id: string): void {
  localStorage.setItem(ACCOUNT, id);
}
