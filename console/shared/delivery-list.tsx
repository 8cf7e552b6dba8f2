import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { useState } from "preact/hooks";
import type { Delivery, DeliveryOutcome, Webhook } from "../../gen/vx/v1/webhook_pb.js";
import { Button } from "./button.tsx";
import { type Column, PagedTable } from "./data-table.tsx";
import { Detail, Details, IdDetail } from "./details.tsx";
import { Dialog } from "./dialog.tsx";
import { EventJson } from "./event-json.tsx";
import { Field } from "./field.tsx";
import { SelectFilter } from "./filter-fields.tsx";
import { numberText } from "./money.tsx";
import { EmptyState, StateBadge } from "./states.tsx";
import { isoMinute, longTimeText, Time, ZoneNote } from "./time.tsx";
import { useToast } from "./toast.tsx";
import { ticks, useStream } from "./use-live.ts";
import { usePages } from "./use-pages.ts";
import type { WebhookApi } from "./webhook-api.ts";

const STATES = [
  ["", "All deliveries"],
  ["pending", "Pending"],
  ["delivered", "Delivered"],
  ["failed", "Failed"],
] as const;

const TONES: Readonly<Record<string, "good" | "warn" | "bad">> = {
  delivered: "good",
  pending: "warn",
  failed: "bad",
};

type DeliveryListProps = {
  readonly api: WebhookApi;
  readonly webhook: Webhook;
  /** Empty for all. */
  readonly state: string;
};

/** The events of a webhook with the outcome of the last attempt, the newest first. */
export function DeliveryList({ api, webhook, state }: DeliveryListProps) {
  const [opened, setOpened] = useState<Delivery>();
  /** The event that is sent again, or a range of them. */
  const [repeated, setRepeated] = useState<Delivery | "range">();
  const webhookId = webhook.id;
  const pages = usePages(
    (pageToken, signal) => api.deliveries({ webhookId, state, pageToken }, signal),
    JSON.stringify([webhookId, state]),
  );
  const isPending = pages.data?.rows.some((delivery) => delivery.state === "pending") === true;
  useStream(isPending ? webhookId : undefined, ticks, pages.reload);
  const dialog = { api, webhook, onDone: pages.reload, onClose: () => setRepeated(undefined) };
  return (
    <>
      <div class="page-header">
        <h2>Deliveries</h2>
        <div class="page-actions">
          <api.Action method="redeliver" onClick={() => setRepeated("range")}>
            Send a range again
          </api.Action>
          <Button onClick={pages.reload} disabled={pages.isLoading}>
            Refresh
          </Button>
        </div>
      </div>
      <div class="filters filters-single">
        <SelectFilter label="State" section="webhooks" name="state" value={state} options={STATES} />
      </div>
      <PagedTable
        caption="Deliveries"
        columns={columnsOf(api, setOpened, setRepeated)}
        keyOf={({ eventId }) => eventId}
        pages={pages}
        empty={<EmptyState title="No deliveries">New events of the selected types appear here.</EmptyState>}
      />
      <ZoneNote />
      {opened && <DeliveryDialog delivery={opened} onClose={() => setOpened(undefined)} />}
      {repeated === "range" && <RangeDialog {...dialog} />}
      {repeated !== undefined && repeated !== "range" && <RepeatDialog {...dialog} delivery={repeated} />}
    </>
  );
}

function columnsOf(
  api: WebhookApi,
  onOpen: (delivery: Delivery) => void,
  onRepeat: (delivery: Delivery) => void,
): readonly Column<Delivery>[] {
  return [
    {
      header: "Event",
      isRowHeader: true,
      cell: (delivery) => (
        <>
          <button type="button" class="link-button" onClick={() => onOpen(delivery)}>
            {delivery.type}
          </button>
          <div class="muted small regular">
            <Time at={delivery.createdAt} />
          </div>
        </>
      ),
    },
    {
      header: "State",
      cell: ({ state, attempts, nextAttemptAt }) => (
        <>
          <StateBadge tone={TONES[state] ?? "warn"} state={state} />
          <div class="muted small">{attempts === 1 ? "1 attempt" : `${numberText(attempts)} attempts`}</div>
          {attempts > 0 && nextAttemptAt && (
            <div class="muted small">
              Next <Time at={nextAttemptAt} />
            </div>
          )}
        </>
      ),
    },
    { header: "Answer", isLong: true, cell: ({ outcome }) => outcome && <Answer outcome={outcome} /> },
    {
      header: "Actions",
      isAction: true,
      cell: (delivery) => (
        <api.Action method="redeliver" label={`Send again ${delivery.type} ${delivery.seq}`} onClick={() => onRepeat(delivery)}>
          Send again
        </api.Action>
      ),
    },
  ];
}

/** The characters of an answer in the table. */
const SHOWN_CHARACTERS = 80;

function Answer({ outcome }: { readonly outcome: DeliveryOutcome }) {
  const { answer, error } = outcome;
  const isCut = answer.length > SHOWN_CHARACTERS;
  return (
    <>
      <div>{outcomeText(outcome)}</div>
      {error !== "" && <div class="small wrap">{error}</div>}
      <div class="muted small wrap">{isCut ? `${answer.slice(0, SHOWN_CHARACTERS)}…` : answer}</div>
    </>
  );
}

/** "200 in 12 ms" */
function outcomeText({ status, latencyMs }: DeliveryOutcome): string {
  return `${status === 0 ? "No answer" : status} in ${numberText(latencyMs)} ms`;
}

export function OutcomeDetails({ outcome }: { readonly outcome: DeliveryOutcome }) {
  return (
    <>
      <Detail name="Outcome">{outcomeText(outcome)}</Detail>
      <Detail name="Error">{outcome.error}</Detail>
      <Detail name="Answer">{outcome.answer === "" ? undefined : <span class="lines">{outcome.answer}</span>}</Detail>
    </>
  );
}

type DeliveryDialogProps = { readonly delivery: Delivery; readonly onClose: () => void };

function DeliveryDialog({ delivery, onClose }: DeliveryDialogProps) {
  const { eventId, type, accountId, seq, data, createdAt } = delivery;
  const { state, attempts, attemptedAt, nextAttemptAt, outcome } = delivery;
  return (
    <Dialog title={type} onClose={onClose}>
      <Details isInDialog>
        <Detail name="State">{state}</Detail>
        <Detail name="Attempts">{numberText(attempts)}</Detail>
        <Detail name="Last attempt">{attemptedAt && longTimeText(attemptedAt)}</Detail>
        <Detail name="Next attempt">{nextAttemptAt && longTimeText(nextAttemptAt)}</Detail>
        {outcome && <OutcomeDetails outcome={outcome} />}
        <Detail name="Time of the event">{createdAt && longTimeText(createdAt)}</Detail>
        <Detail name="Number">{numberText(seq)}</Detail>
        <IdDetail name="Account id" id={accountId} />
        <IdDetail name="Event id" id={eventId} />
      </Details>
      {data && <EventJson event={{ id: eventId, type, accountId, seq, data, ...(createdAt && { createdAt }) }} />}
    </Dialog>
  );
}

type RepeatDialogProps = Omit<DeliveryListProps, "state"> & {
  readonly onDone: () => void;
  readonly onClose: () => void;
};

function RepeatDialog({
  api,
  webhook,
  delivery: { type, eventId },
  onDone,
  onClose,
}: RepeatDialogProps & { readonly delivery: Delivery }) {
  const toast = useToast();
  const repeat = async (reason: string) => {
    await api.redeliver({ webhookId: webhook.id, eventId }, reason);
    toast("The event is sent again.");
    onDone();
  };
  return (
    <api.Form title={`Send “${type}” again?`} action="Send again" errors={{}} onSubmit={repeat} onClose={onClose}>
      {() => <p>The event has the same id as before, and new attempts.</p>}
    </api.Form>
  );
}

const HOUR_MS = 3_600_000;

/** Sends what a webhook should have received in a time and did not. */
function RangeDialog({ api, webhook, onDone, onClose }: RepeatDialogProps) {
  const toast = useToast();
  const [form, setForm] = useState(() => ({ from: isoMinute(new Date(Date.now() - HOUR_MS)), to: "" }));
  const [from, to] = [new Date(form.from), new Date(form.to)];
  const isRange = form.to === "" || to > from;
  const repeat = async (reason: string) => {
    const { events, hasMore } = await api.redeliver(
      {
        webhookId: webhook.id,
        from: timestampFromDate(from),
        ...(form.to !== "" && { to: timestampFromDate(to) }),
      },
      reason,
    );
    const sent = events === 1 ? "1 event is sent again." : `${numberText(events)} events are sent again.`;
    toast(hasMore ? `${sent} There are more: repeat this.` : sent);
    onDone();
  };
  return (
    <api.Form
      title="Send a range again"
      action="Send again"
      errors={{
        from: Number.isNaN(from.getTime()) ? "Enter a time." : undefined,
        to: isRange ? undefined : "Enter a later time, or nothing.",
      }}
      onSubmit={repeat}
      onClose={onClose}
    >
      {(errors) => (
        <>
          <p>Sends the events of this time that failed, or that were not sent while the webhook was disabled.</p>
          {(["from", "to"] as const).map((name) => (
            <Field
              key={name}
              label={name === "from" ? "From" : "Until"}
              error={errors[name]}
              {...(name === "to" && { hint: "Empty: until now." })}
            >
              {(control) => (
                <input
                  {...control}
                  type="datetime-local"
                  value={form[name]}
                  onInput={(event) => setForm({ ...form, [name]: event.currentTarget.value })}
                />
              )}
            </Field>
          ))}
        </>
      )}
    </api.Form>
  );
}
