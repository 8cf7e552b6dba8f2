import { useEffect, useState } from "preact/hooks";
import { Frame, type Section } from "../shared/frame.tsx";
import { type Problem, problemOf } from "../shared/problem.ts";
import { PRODUCT } from "../shared/product.ts";
import { createSession } from "../shared/session.ts";
import { SignIn } from "../shared/sign-in.tsx";
import { Notice } from "../shared/states.tsx";
import { Toasts } from "../shared/toast.tsx";
import { useRoute } from "../shared/use-route.ts";
import { EventsSection } from "./events-section.tsx";
import { FailuresSection } from "./failures-section.tsx";
import { KeyPage } from "./key-page.tsx";
import { KeysSection } from "./keys-section.tsx";
import { LedgerSection } from "./ledger-section.tsx";
import { LimitsSection } from "./limits-section.tsx";
import { OverviewSection } from "./overview-section.tsx";
import { PaymentsSection } from "./payments-section.tsx";
import { PricesSection } from "./prices-section.tsx";
import { StatementsSection } from "./statements-section.tsx";
import { signIn, type Viewer } from "./viewer.ts";
import { WebhooksSection } from "./webhooks-section.tsx";

const SECTIONS: readonly Section[] = [
  { id: "overview", label: "Overview" },
  { id: "ledger", label: "Ledger" },
  { id: "statements", label: "Statements" },
  { id: "failures", label: "Failures" },
  { id: "events", label: "Events" },
  { id: "webhooks", label: "Webhooks" },
  { id: "limits", label: "Limits" },
  { id: "prices", label: "Prices" },
  { id: "keys", label: "API keys" },
];

const PAYMENTS: Section = { id: "payments", label: "Payments" };

/** The page of a customer: signed in with an API key, which is kept in memory only. */
export function App() {
  const [viewer, setViewer] = useState<Viewer>();
  const [notice, setNotice] = useState<string>();
  const end = (message: string | undefined) => {
    setViewer(undefined);
    setNotice(message);
  };

  // A page that the browser kept for its Back button must not show the account again.
  useEffect(() => {
    const forget = (event: PageTransitionEvent) => {
      if (event.persisted) end(undefined);
    };
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, []);

  const submit = async (secret: string): Promise<Problem | undefined> => {
    try {
      setViewer(await signIn(createSession(secret, end)));
      setNotice(undefined);
      return undefined;
    } catch (error) {
      return problemOf(error);
    }
  };

  if (viewer === undefined) return <KeyForm notice={notice} onSubmit={submit} />;
  return (
    <Toasts>
      <Account viewer={viewer} onSignOut={() => end(undefined)} />
    </Toasts>
  );
}

type KeyFormProps = {
  readonly notice: string | undefined;
  readonly onSubmit: (secret: string) => Promise<Problem | undefined>;
};

function KeyForm(props: KeyFormProps) {
  return (
    <SignIn
      title="Your account"
      lead="See your balance, your usage and every charge."
      secretName="API key"
      hint="A key with the scope “read”. It stays in the memory of this tab, until you close or reload it."
      prefix="vx_live_"
      footer={<Links />}
      {...props}
    />
  );
}

function Account({ viewer, onSignOut }: { readonly viewer: Viewer; readonly onSignOut: () => void }) {
  const route = useRoute();
  const sections = viewer.canPay ? [...SECTIONS, PAYMENTS] : SECTIONS;
  const current = sections.find(({ id }) => id === route.section)?.id ?? "overview";
  return (
    <Frame
      sections={sections}
      current={current}
      identity={
        <>
          <div>{viewer.me.keyName}</div>
          <code class="muted">{viewer.me.key}</code>
        </>
      }
      onSignOut={onSignOut}
      footer={<Links />}
    >
      {viewer.isSuspended && (
        <Notice tone="warn">
          The account is suspended: calls that generate are refused. Contact the operator of this service.
        </Notice>
      )}
      {current === "overview" && <OverviewSection viewer={viewer} params={route.params} />}
      {current === "ledger" && <LedgerSection viewer={viewer} params={route.params} />}
      {current === "statements" && <StatementsSection viewer={viewer} />}
      {current === "failures" && <FailuresSection viewer={viewer} params={route.params} />}
      {current === "events" && <EventsSection viewer={viewer} params={route.params} />}
      {current === "webhooks" && <WebhooksSection viewer={viewer} params={route.params} />}
      {current === "keys" && <Keys viewer={viewer} id={route.params.get("id")} />}
      {current === "limits" && <LimitsSection viewer={viewer} />}
      {current === "prices" && <PricesSection viewer={viewer} />}
      {current === "payments" && <PaymentsSection viewer={viewer} />}
    </Frame>
  );
}

function Keys({ viewer, id }: { readonly viewer: Viewer; readonly id: string | null }) {
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
