import type { ComponentChildren } from "preact";
import type { Section as NavSection } from "../shared/frame.tsx";
import { EventsSection } from "./account-events.tsx";
import { AccountPage } from "./account-page.tsx";
import { AccountsSection } from "./accounts-section.tsx";
import { AuditSection } from "./audit-section.tsx";
import { KeyPage } from "./key-page.tsx";
import { KeysSection } from "./keys-section.tsx";
import { LedgerSection } from "./ledger-section.tsx";
import { LogSection } from "./log-section.tsx";
import { ModelsSection } from "./models-section.tsx";
import { OperatorsSection } from "./operators-section.tsx";
import { OverviewSection } from "./overview-section.tsx";
import { PaymentsSection } from "./payments-section.tsx";
import { PlanPage } from "./plan-page.tsx";
import { PlansSection } from "./plans-section.tsx";
import { UsageSection } from "./usage-section.tsx";
import { WebhooksSection } from "./webhooks.tsx";

type SectionProps = {
  /** What the URL selects in the section. */
  readonly params: URLSearchParams;
};

type OperatorSection = NavSection & { readonly Section: (props: SectionProps) => ComponentChildren };

/** In the order of the navigation. */
export const SECTIONS: readonly [OperatorSection, ...OperatorSection[]] = [
  { id: "overview", label: "Overview", Section: OverviewSection },
  {
    id: "accounts",
    label: "Accounts",
    Section: ({ params }) => {
      const id = params.get("id");
      return id === null ? <AccountsSection params={params} /> : <AccountPage id={id} key={id} params={params} />;
    },
  },
  {
    id: "keys",
    label: "Keys",
    Section: ({ params }) => {
      const id = params.get("id");
      return id === null ? <KeysSection params={params} /> : <KeyPage id={id} key={id} />;
    },
  },
  { id: "usage", label: "Usage", Section: UsageSection },
  { id: "ledger", label: "Ledger", Section: LedgerSection },
  { id: "payments", label: "Payments", Section: PaymentsSection },
  { id: "models", label: "Models", Section: ModelsSection },
  {
    id: "plans",
    label: "Plans",
    Section: ({ params }) => {
      const name = params.get("name");
      return name === null ? <PlansSection /> : <PlanPage name={name} key={name} />;
    },
  },
  { id: "events", label: "Events", Section: EventsSection },
  { id: "webhooks", label: "Webhooks", Section: WebhooksSection },
  { id: "operators", label: "Operators", Section: OperatorsSection },
  { id: "log", label: "Log", Section: LogSection },
  { id: "audit", label: "Audit", Section: AuditSection },
];

/** The section of an address; the first one if there is no such section. */
export function sectionOf(id: string): OperatorSection {
  return SECTIONS.find((section) => section.id === id) ?? SECTIONS[0];
}
