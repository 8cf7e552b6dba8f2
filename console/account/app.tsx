import { createClient } from "@connectrpc/connect";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import {
  type ClosedAccount,
  type GetSessionResponse,
  AccountService as PageService,
} from "../../gen/vx/account/v1/account_pb.js";
import { Button } from "../shared/button.tsx";
import { Frame, type Section } from "../shared/frame.tsx";
import { type Problem, problemOf } from "../shared/problem.ts";
import { PRODUCT } from "../shared/product.ts";
import { createSession } from "../shared/session.ts";
import { SignIn } from "../shared/sign-in.tsx";
import { Notice } from "../shared/states.tsx";
import { Toasts } from "../shared/toast.tsx";
import { useRoute } from "../shared/use-route.ts";
import { ActivitySection } from "./activity-section.tsx";
import { EventsSection } from "./events-section.tsx";
import { FailuresSection } from "./failures-section.tsx";
import { KeyPage } from "./key-page.tsx";
import { KeysSection } from "./keys-section.tsx";
import { LedgerSection } from "./ledger-section.tsx";
import { LimitsSection } from "./limits-section.tsx";
import { MembersSection } from "./members-section.tsx";
import { OverviewSection } from "./overview-section.tsx";
import { PaymentsSection } from "./payments-section.tsx";
import {
  chooseAccount,
  chosenAccount,
  closedAccount,
  type Link,
  personTransport,
  readPerson,
  SIGN_IN,
  startDemo,
  startView,
  takeLink,
} from "./person.ts";
import { PlaygroundSection } from "./playground-section.tsx";
import { PricesSection } from "./prices-section.tsx";
import { SessionsSection } from "./sessions-section.tsx";
import { StatementsSection } from "./statements-section.tsx";
import { UsageSection } from "./usage-section.tsx";
import { openAccount, signInWithKey, type Viewer } from "./viewer.ts";
import { WebhooksSection } from "./webhooks-section.tsx";
import { AccountSwitcher, Welcome } from "./welcome.tsx";

type AccountSection = Section & {
  readonly Content: (props: { readonly viewer: Viewer; readonly params: URLSearchParams }) => ComponentChildren;
  readonly isFor?: (viewer: Viewer) => boolean;
};

const isMember = ({ membership }: Viewer) => membership !== undefined;
const isPerson = ({ membership }: Viewer) => membership !== undefined && membership.person.operator === "";

/** In the order of the navigation. */
const SECTIONS: readonly [AccountSection, ...AccountSection[]] = [
  { id: "overview", label: "Overview", Content: OverviewSection },
  { id: "usage", label: "Usage", Content: UsageSection },
  { id: "playground", label: "Playground", Content: PlaygroundSection, isFor: isMember },
  { id: "keys", label: "API keys", Content: Keys },
  { id: "limits", label: "Limits", Content: LimitsSection },
  { id: "prices", label: "Prices", Content: PricesSection },
  { id: "ledger", label: "Ledger", Content: LedgerSection },
  { id: "payments", label: "Payments", Content: PaymentsSection, isFor: ({ canPay }) => canPay },
  { id: "statements", label: "Statements", Content: StatementsSection },
  { id: "failures", label: "Failures", Content: FailuresSection },
  { id: "events", label: "Events", Content: EventsSection },
  { id: "webhooks", label: "Webhooks", Content: WebhooksSection },
  { id: "members", label: "Members", Content: MembersSection, isFor: isMember },
  { id: "activity", label: "Activity", Content: ActivitySection, isFor: isMember },
  { id: "sessions", label: "Your sessions", Content: SessionsSection, isFor: isPerson },
];

type State =
  | { readonly kind: "loading" }
  | { readonly kind: "signed out"; readonly notice?: string | undefined }
  | { readonly kind: "signed in"; readonly viewer: Viewer }
  | {
      readonly kind: "welcome";
      readonly person: GetSessionResponse;
      readonly link: Link | undefined;
      readonly closed: ClosedAccount | undefined;
    };

/** Whether people have sessions here. */
const hasSessions = PRODUCT.hasSignIn || PRODUCT.offersDemo;
const NOT_ENDED = "The server did not end your session. Reload this page, then sign out again.";
const NO_DEMO = "The server did not start the session of the demo owner. Reload this page.";
const INVALID_VIEW = "The link was used or has expired. Open the page from the console again.";

/** The page of a customer: signed in with an API key, which is kept in memory only, or as a person, with a cookie. */
export function App() {
  const [state, setState] = useState<State>({ kind: "loading" });
  const end = (notice?: string) => setState({ kind: "signed out", notice });

  /** Shows what the session of the browser permits. */
  const restore = async (chosen?: string) => {
    const link = takeLink();
    if (chosen !== undefined) chooseAccount(chosen);
    try {
      if (link?.section === "view" && !(await startView(link.token))) return end(INVALID_VIEW);
      const person = hasSessions || link?.section === "view" ? await readPerson() : undefined;
      if (person === undefined) return end();
      const closed = closedAccount(person);
      const account = chosenAccount(person);
      if (closed !== undefined || account === undefined || (link !== undefined && link.section !== "view")) {
        return setState({ kind: "welcome", person, link, closed });
      }
      const missing = () => void leaveIfLost(account.id);
      const viewer = await openAccount(personTransport(account.id, end, missing), { person, account });
      setState({ kind: "signed in", viewer });
    } catch (error) {
      const { title, message } = problemOf(error);
      end(`${title}: ${message}`);
    }
  };

  /** An account that was closed, or that the person lost, must not stay on the page. */
  const leaveIfLost = async (id: string) => {
    const person = await readPerson().catch(() => undefined);
    if (person && !person.accounts.some((account) => account.id === id)) await restore();
  };

  useEffect(() => {
    void restore();
    // A page that the browser kept for its Back button must not show the account of a key again.
    const forget = (event: PageTransitionEvent) => {
      if (event.persisted) setState({ kind: "loading" });
    };
    const show = (event: PageTransitionEvent) => {
      if (event.persisted) void restore();
    };
    const follow = () => {
      if (/[?&]token=/.test(location.hash)) void restore();
    };
    addEventListener("pagehide", forget);
    addEventListener("pageshow", show);
    addEventListener("hashchange", follow);
    return () => {
      removeEventListener("pagehide", forget);
      removeEventListener("pageshow", show);
      removeEventListener("hashchange", follow);
    };
  }, []);

  const submit = async (secret: string): Promise<Problem | undefined> => {
    try {
      setState({ kind: "signed in", viewer: await signInWithKey(createSession(secret, end)) });
      return undefined;
    } catch (error) {
      return problemOf(error);
    }
  };
  const startDemoSession = async () => {
    const isStarted = await startDemo().catch(() => false);
    if (isStarted) await restore();
    else end(NO_DEMO);
  };
  const signOut = async () => {
    const api = createClient(
      PageService,
      personTransport(undefined, () => {}),
    );
    await api.endSession({}).then(
      () => end(),
      () => end(NOT_ENDED),
    );
  };

  switch (state.kind) {
    case "loading":
      return null;
    case "signed out":
      return <KeyForm notice={state.notice} onSubmit={submit} onDemo={() => void startDemoSession()} />;
    case "welcome":
      return (
        <Welcome
          person={state.person}
          link={state.link}
          closed={state.closed}
          api={createClient(PageService, personTransport(undefined, end))}
          onOpen={(id) => void restore(id)}
          onSignOut={() => void signOut()}
          footer={<Links />}
        />
      );
    case "signed in": {
      const { viewer } = state;
      return (
        <Toasts>
          <Account
            key={viewer.id}
            viewer={viewer}
            onOpen={(id) => void restore(id)}
            onSignOut={() => (viewer.membership ? void signOut() : end())}
          />
        </Toasts>
      );
    }
  }
}

type KeyFormProps = {
  readonly notice: string | undefined;
  readonly onSubmit: (secret: string) => Promise<Problem | undefined>;
  readonly onDemo: () => void;
};

function KeyForm({ onDemo, ...props }: KeyFormProps) {
  return (
    <SignIn
      title="Your account"
      lead="See your balance, your usage and every charge."
      secretName="API key"
      hint="A key with the scope “read”. It stays in the memory of this tab, until you close or reload it."
      prefix="vx_live_"
      footer={<Links />}
      {...props}
      {...(hasSessions && { first: <PersonSignIn onDemo={onDemo} /> })}
    />
  );
}

function PersonSignIn({ onDemo }: Pick<KeyFormProps, "onDemo">) {
  const link = takeLink();
  return (
    <>
      {link && <Notice tone="info">Sign in to accept the invitation.</Notice>}
      {PRODUCT.hasSignIn && (
        <a class="button button-primary" href={SIGN_IN}>
          {PRODUCT.signUp === "open" ? "Sign in or sign up" : "Sign in"}
        </a>
      )}
      {PRODUCT.offersDemo && (
        <Button tone={PRODUCT.hasSignIn ? "plain" : "primary"} onClick={onDemo}>
          Sign in as the demo owner
        </Button>
      )}
      <p class="muted small sign-in-or">or with an API key</p>
    </>
  );
}

type AccountProps = {
  readonly viewer: Viewer;
  readonly onOpen: (accountId: string | undefined) => void;
  readonly onSignOut: () => void;
};

function Account({ viewer, onOpen, onSignOut }: AccountProps) {
  const route = useRoute();
  const [sections] = useState(() => SECTIONS.filter(({ isFor }) => isFor?.(viewer) ?? true));
  const current = sections.find(({ id }) => id === route.section) ?? SECTIONS[0];
  const operator = viewer.membership?.person.operator ?? "";
  return (
    <Frame
      sections={sections}
      current={current.id}
      identity={<Identity viewer={viewer} onOpen={onOpen} />}
      onSignOut={onSignOut}
      footer={<Links />}
    >
      {operator !== "" && (
        <Notice tone="warn">
          You view the page of “{viewer.account?.name}” as the operator {operator}. You cannot change anything, and the members
          see the view in their activity.
        </Notice>
      )}
      {viewer.membership?.person.simulatesPayments && (
        <Notice tone="info">You are signed in as the owner of the demo account. Payments are simulated: no money moves.</Notice>
      )}
      {viewer.account?.state === "suspended" && (
        <Notice tone="warn">
          The account is suspended: calls that generate are refused. Contact the operator of this service.
        </Notice>
      )}
      <current.Content viewer={viewer} params={route.params} />
    </Frame>
  );
}

function Identity({ viewer: { me, membership }, onOpen }: Pick<AccountProps, "viewer" | "onOpen">) {
  if (membership === undefined) {
    return (
      <>
        <div>{me?.keyName}</div>
        <code class="muted">{me?.key}</code>
      </>
    );
  }
  const { person, account } = membership;
  return (
    <>
      {person.accounts.length > 1 ? (
        <AccountSwitcher accounts={person.accounts} current={account.id} onOpen={onOpen} />
      ) : (
        <div>{account.name}</div>
      )}
      <div class="muted">{person.operator || person.email || person.personId}</div>
      {person.operator === "" && <div class="muted">{account.role}</div>}
    </>
  );
}

function Keys({ viewer, params }: { readonly viewer: Viewer; readonly params: URLSearchParams }) {
  const id = params.get("id");
  return id === null ? <KeysSection viewer={viewer} /> : <KeyPage viewer={viewer} id={id} key={id} />;
}

function Links() {
  return (
    <>
      <a href="/">{PRODUCT.name}</a>
      <a href="/docs">API reference</a>
      {PRODUCT.supportUrl !== "" && <a href={PRODUCT.supportUrl}>Support</a>}
      <a href="/account/assets/licenses.txt">Licenses</a>
    </>
  );
}
