import type { Timestamp } from "@bufbuild/protobuf/wkt";
import type { ComponentChildren } from "preact";
import type { Delivery, DeliveryOutcome, Webhook } from "../../gen/vx/v1/webhook_pb.js";
import type { ChangeDialog } from "./form-dialog.tsx";
import type { Page } from "./use-pages.ts";

export type WebhookProperties = {
  readonly url: string;
  readonly types: string[];
  readonly description: string;
};

/** A webhook with its new secret. */
export type NewSecret = { readonly webhook?: Webhook | undefined; readonly secret: string };

/** The webhooks of an account or of operators, and what the viewer can do with them. Only changes by operators have a reason. */
export type WebhookApi = {
  /** Identifies the list. */
  readonly id: string;
  readonly list: (signal: AbortSignal) => Promise<readonly Webhook[]>;
  readonly create: (properties: WebhookProperties, reason: string) => Promise<NewSecret>;
  readonly update: (
    request: Partial<WebhookProperties> & {
      readonly webhookId: string;
      readonly state?: string;
      readonly updateMask: { readonly paths: string[] };
    },
    reason: string,
  ) => Promise<unknown>;
  readonly remove: (webhookId: string, reason: string) => Promise<unknown>;
  readonly rotate: (
    request: { readonly webhookId: string; readonly overlapSeconds: number },
    reason: string,
  ) => Promise<NewSecret>;
  readonly test: (webhookId: string, signal: AbortSignal) => Promise<DeliveryOutcome | undefined>;
  readonly deliveries: (
    request: { readonly webhookId: string; readonly state: string; readonly pageToken: string },
    signal: AbortSignal,
  ) => Promise<Page<Delivery>>;
  readonly redeliver: (
    request: {
      readonly webhookId: string;
      readonly eventId?: string;
      readonly from?: Timestamp;
      readonly to?: Timestamp;
    },
    reason: string,
  ) => Promise<{ readonly events: number; readonly hasMore: boolean }>;
  /** The types of events that a webhook can select. */
  readonly types: readonly string[];
  /** The address of the page of a webhook. */
  readonly href: (id: string) => string;
  /** A button that calls a method. */
  readonly Action: (props: WebhookActionProps) => ComponentChildren;
  readonly Form: ChangeDialog;
};

export type WebhookActionProps = {
  readonly method: "createWebhook" | "updateWebhook" | "deleteWebhook" | "rotateWebhook" | "testWebhook" | "redeliver";
  readonly tone?: "primary" | "plain" | "danger";
  readonly label?: string;
  readonly onClick: () => void;
  readonly children: ComponentChildren;
};

export const DELIVERIES_PER_PAGE = 25;
