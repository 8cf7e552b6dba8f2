import type { Client } from "@connectrpc/connect";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { AccountOfPerson, AccountService, ClosedAccount, GetSessionResponse } from "../../gen/vx/account/v1/account_pb.js";
import type { GetStatementResponse } from "../../gen/vx/v1/statement_pb.js";
import { Button } from "../shared/button.tsx";
import { ProblemNotice, useAction } from "../shared/dialog.tsx";
import { Brand } from "../shared/frame.tsx";
import { PRODUCT } from "../shared/product.ts";
import { TextField } from "../shared/text-field.tsx";
import { longTimeText } from "../shared/time.tsx";
import { forgetLink, type Link } from "./person.ts";
import { StatementButtons, StatementTable } from "./statements-section.tsx";

/** As long as the server keeps it. */
const SHOWN_DAYS = 30;

type WelcomeProps = {
  readonly person: GetSessionResponse;
  readonly link: Link | undefined;
  /** The account that the page would show, if it was closed. */
  readonly closed: ClosedAccount | undefined;
  readonly api: Client<typeof AccountService>;
  /** Opens an account; undefined reads again what the person can do. */
  readonly onOpen: (accountId: string | undefined) => void;
  readonly onSignOut: () => void;
  readonly footer: ComponentChildren;
};

/** What a signed-in person sees before an account: an invitation, that an account was closed, the sign-up, or a choice among accounts. */
export function Welcome(props: WelcomeProps) {
  const { person, link, closed } = props;
  const [isClosedSeen, setClosedSeen] = useState(false);
  if (link?.section === "invitation") return <Invitation {...props} link={link} />;
  if (closed && !isClosedSeen) return <Closed {...props} closed={closed} onContinue={() => setClosedSeen(true)} />;
  if (person.accounts.length > 0 && link === undefined) return <Choice {...props} />;
  const needsInvitation = PRODUCT.signUp === "invite" && link?.section !== "sign-up";
  return person.canSignUp && !needsInvitation ? <SignUp {...props} /> : <NotInvited {...props} />;
}

type CardProps = Pick<WelcomeProps, "person" | "onSignOut" | "footer"> & {
  readonly title: string;
  readonly children: ComponentChildren;
};

function Card({ title, person, onSignOut, footer, children }: CardProps) {
  useEffect(() => {
    document.title = `${title} · ${PRODUCT.name}`;
  }, [title]);
  return (
    <div class="sign-in">
      <header>
        <Brand />
      </header>
      <main class="sign-in-card">
        <h1>{title}</h1>
        {children}
        <div class="sign-in-other">
          <span class="muted small wrap">Signed in as {person.email || person.personId}</span>
          <Button onClick={onSignOut}>Sign out</Button>
        </div>
      </main>
      <footer class="frame-footer small">{footer}</footer>
    </div>
  );
}

type ClosedProps = WelcomeProps & { readonly closed: ClosedAccount; readonly onContinue: () => void };

/** The name of the account and its other data are erased. */
function Closed({ closed, onContinue, ...props }: ClosedProps) {
  const [statement, setStatement] = useState<GetStatementResponse>();
  const { isBusy, problem, perform } = useAction();
  const load = () =>
    perform(async () => {
      setStatement((await props.api.getClosedStatement({ accountId: closed.id })).statement);
    });
  const canContinue = props.person.accounts.length > 0 || props.person.canSignUp;
  return (
    <Card {...props} title="Your account was closed">
      <p>
        The account <code>{closed.id}</code> was closed {closed.closedAt && longTimeText(closed.closedAt)}. Its keys no longer
        work. You get its last statement here for {SHOWN_DAYS} days.
      </p>
      {problem && <ProblemNotice problem={problem} />}
      {statement && <StatementTable statement={statement} />}
      <div class="page-actions">
        {statement ? (
          <StatementButtons statement={statement} />
        ) : (
          <Button tone="primary" onClick={() => void load()} isBusy={isBusy}>
            Show the last statement
          </Button>
        )}
        {canContinue && (
          <Button onClick={onContinue}>
            {props.person.accounts.length > 0 ? "Choose another account" : "Create another account"}
          </Button>
        )}
      </div>
    </Card>
  );
}

/** Asks first: money that the person adds later belongs to the account. */
function Invitation(props: WelcomeProps & { readonly link: Link }) {
  const { api, link, onOpen } = props;
  const { isBusy, problem, perform } = useAction();
  const accept = () =>
    perform(async () => {
      const { accountId } = await api.acceptInvitation({ token: link.token });
      forgetLink();
      onOpen(accountId);
    });
  const ignore = () => {
    forgetLink();
    onOpen(undefined);
  };
  return (
    <Card {...props} title="You are invited">
      <p>Someone invites you to work with an account of {PRODUCT.name}. Accept only if you expected the invitation.</p>
      {problem && <ProblemNotice problem={problem} />}
      <div class="dialog-actions">
        <Button onClick={ignore} disabled={isBusy}>
          Ignore
        </Button>
        <Button tone="primary" onClick={() => void accept()} isBusy={isBusy}>
          Accept invitation
        </Button>
      </div>
    </Card>
  );
}

function SignUp(props: WelcomeProps) {
  const { api, link, onOpen } = props;
  const ignore = () => {
    forgetLink();
    onOpen(undefined);
  };
  const [name, setName] = useState("");
  const [error, setError] = useState<string>();
  const { isBusy, problem, perform } = useAction();
  const submit = async (event: Event) => {
    event.preventDefault();
    const missing = name.trim() === "" ? "Enter a name." : undefined;
    setError(missing);
    if (missing !== undefined) return;
    await perform(async () => {
      const { accountId } = await api.signUp({ name: name.trim(), invitation: link?.token ?? "" });
      forgetLink();
      onOpen(accountId);
    });
  };
  return (
    <Card {...props} title="Create your account">
      <p class="muted">The account has the balance and the keys. You can invite others to it.</p>
      {problem && <ProblemNotice problem={problem} />}
      <form onSubmit={(event) => void submit(event)} noValidate>
        <TextField
          label="Name of the account"
          hint="Such as the name of your company or project. You can change it later."
          error={error}
          value={name}
          maxLength={100}
          onChange={setName}
        />
        <div class="dialog-actions">
          {link && problem && (
            <Button onClick={ignore} disabled={isBusy}>
              Ignore the invitation
            </Button>
          )}
          <Button type="submit" tone="primary" isBusy={isBusy}>
            Create account
          </Button>
        </div>
      </form>
    </Card>
  );
}

/** What to do without an invitation. */
function NotInvited(props: WelcomeProps) {
  const { person, onOpen } = props;
  return (
    <Card {...props} title="You have no account yet">
      <p>There are two ways to get one:</p>
      <ul class="text-list">
        <li>
          If your team uses {PRODUCT.name}, ask an owner of its account for an invitation, and open the link in this browser
          {person.email !== "" && <> as {person.email}</>}.
        </li>
        <li>
          Otherwise ask the operator of this service for an account
          {PRODUCT.supportUrl !== "" && (
            <>
              : <a href={PRODUCT.supportUrl}>contact support</a>
            </>
          )}
          .
        </li>
      </ul>
      {refusalText(person) !== undefined && <p>{refusalText(person)}</p>}
      <Button onClick={() => onOpen(undefined)}>Try again</Button>
    </Card>
  );
}

/** Why the person cannot sign up by itself. */
function refusalText({ email, canSignUp }: GetSessionResponse): string | undefined {
  if (email === "") {
    return "The identity provider has not verified your e-mail address. Verify it there, then sign in again: sign-up needs it.";
  }
  if (PRODUCT.signUp === "closed" || canSignUp) return undefined;
  const domain = email.slice(email.lastIndexOf("@") + 1);
  return `Only people with an e-mail address of certain domains can sign up, and ${domain} is not among them. If you have another address, sign out, then sign in with it.`;
}

function Choice(props: WelcomeProps) {
  return (
    <Card {...props} title="Choose an account">
      <ul class="plain-list choice-list">
        {props.person.accounts.map(({ id, name, role }) => (
          <li key={id}>
            <button type="button" class="account-choice" onClick={() => props.onOpen(id)}>
              <span class="wrap">{name}</span> <span class="muted small">{role}</span>
            </button>
          </li>
        ))}
      </ul>
    </Card>
  );
}

type SwitcherProps = {
  readonly accounts: readonly AccountOfPerson[];
  readonly current: string;
  readonly onOpen: (accountId: string) => void;
};

/** Changes between the accounts of the person. */
export function AccountSwitcher({ accounts, current, onOpen }: SwitcherProps) {
  return (
    <select class="account-switcher" aria-label="Account" value={current} onChange={(event) => onOpen(event.currentTarget.value)}>
      {accounts.map(({ id, name }) => (
        <option key={id} value={id}>
          {name}
        </option>
      ))}
    </select>
  );
}
