import { useEffect, useState } from "preact/hooks";
import { Frame } from "../shared/frame.tsx";
import { type Problem, problemOf } from "../shared/problem.ts";
import { PRODUCT } from "../shared/product.ts";
import { SignIn } from "../shared/sign-in.tsx";
import { Toasts } from "../shared/toast.tsx";
import { useRoute } from "../shared/use-route.ts";
import { FindField } from "./find-field.tsx";
import { LiveProvider } from "./live-figures.tsx";
import { endSession, type OperatorSession, readSession, SessionProvider, sessionOf } from "./operator-session.ts";
import { SECTIONS, sectionOf } from "./sections.tsx";

const NOT_ENDED =
  "The server did not end your session. Reload this page, then sign out again; otherwise the session ends after 1 hour without use.";

/** The console of operators: signed in with a token, which is kept in memory only, or with OpenID Connect. */
export function App() {
  const [session, setSession] = useState<OperatorSession>();
  const [hasOpenId, setHasOpenId] = useState<boolean>();
  const [notice, setNotice] = useState<string>();
  const end = (message: string | undefined) => {
    setSession(undefined);
    setNotice(message);
  };

  useEffect(() => {
    const restore = async () => {
      const state = await readSession().catch(() => undefined);
      setHasOpenId(state?.openid_connect ?? false);
      if (state) setSession(sessionOf(state, undefined, end));
    };
    void restore();
    // A page that the browser kept for its Back button must not show the console again.
    const forget = (event: PageTransitionEvent) => {
      if (event.persisted) end(undefined);
    };
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, []);

  const submit = async (token: string): Promise<Problem | undefined> => {
    try {
      setSession(sessionOf(await readSession(token), token, end));
      setNotice(undefined);
      return undefined;
    } catch (error) {
      return problemOf(error);
    }
  };
  const signOut = async (isCookie: boolean) => {
    const isEnded = !isCookie || (await endSession());
    end(isEnded ? undefined : NOT_ENDED);
  };

  // Until the server reports whether the browser has a session, neither page can be shown.
  if (hasOpenId === undefined) return null;
  if (session === undefined) return <TokenForm notice={notice} onSubmit={submit} hasOpenId={hasOpenId} />;
  return (
    <SessionProvider value={session}>
      <Toasts>
        <LiveProvider>
          <Console session={session} onSignOut={() => void signOut(session.isCookie)} />
        </LiveProvider>
      </Toasts>
    </SessionProvider>
  );
}

type TokenFormProps = {
  readonly notice: string | undefined;
  readonly onSubmit: (token: string) => Promise<Problem | undefined>;
  readonly hasOpenId: boolean;
};

function TokenForm({ hasOpenId, ...form }: TokenFormProps) {
  return (
    <SignIn
      title="Operator console"
      lead="Accounts, keys, prices and the ledger of this service."
      secretName="operator token"
      hint="Your token, or the one in the file “admin-token” of the data folder. It stays in the memory of this tab."
      prefix=""
      footer={<Links />}
      {...form}
    >
      {hasOpenId && (
        <div class="sign-in-other">
          <span class="muted small">or</span>
          <a class="button button-plain" href="/auth/sign-in">
            Sign in with OpenID Connect
          </a>
        </div>
      )}
    </SignIn>
  );
}

type ConsoleProps = { readonly session: OperatorSession; readonly onSignOut: () => void };

function Console({ session: { operator }, onSignOut }: ConsoleProps) {
  const route = useRoute();
  const { id, Section } = sectionOf(route.section);
  return (
    <Frame
      sections={SECTIONS}
      current={id}
      search={(onFound) => <FindField onFound={onFound} />}
      identity={
        <>
          <div>{operator.name}</div>
          <div class="muted">{operator.role}</div>
        </>
      }
      onSignOut={onSignOut}
      footer={<Links />}
    >
      <Section params={route.params} />
    </Frame>
  );
}

function Links() {
  return (
    <>
      {PRODUCT.supportUrl !== "" && <a href={PRODUCT.supportUrl}>Support</a>}
      <a href="/assets/licenses.txt">Licenses</a>
    </>
  );
}
