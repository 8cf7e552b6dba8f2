import { type Client, createClient } from "@connectrpc/connect";
import { useEffect, useState } from "preact/hooks";
import { AdminService } from "../../gen/vx/admin/v1/admin_pb.js";
import { Frame, type Section } from "../shared/frame.tsx";
import { type Problem, problemOf } from "../shared/problem.ts";
import { PRODUCT } from "../shared/product.ts";
import { createSession } from "../shared/session.ts";
import { SignIn } from "../shared/sign-in.tsx";
import { Toasts } from "../shared/toast.tsx";
import { AccountsSection } from "./accounts-section.tsx";

export type Operator = Client<typeof AdminService>;

const SECTIONS: readonly Section[] = [{ id: "accounts", label: "Accounts" }];

/** The console of operators: signed in with an operator token, which is kept in memory only. */
export function App() {
  const [operator, setOperator] = useState<Operator>();
  const [notice, setNotice] = useState<string>();
  const end = (message: string | undefined) => {
    setOperator(undefined);
    setNotice(message);
  };

  // A page that the browser kept for its Back button must not show the console again.
  useEffect(() => {
    const forget = (event: PageTransitionEvent) => {
      if (event.persisted) end(undefined);
    };
    addEventListener("pagehide", forget);
    return () => removeEventListener("pagehide", forget);
  }, []);

  const submit = async (token: string): Promise<Problem | undefined> => {
    try {
      const client = createClient(AdminService, createSession(token, end));
      await client.listPlans({});
      setOperator(() => client);
      setNotice(undefined);
      return undefined;
    } catch (error) {
      return problemOf(error);
    }
  };

  if (operator === undefined) {
    return (
      <SignIn
        title="Operator console"
        lead="Accounts, keys, prices and the ledger of this service."
        label="Operator token"
        hint="Your token, or the one in the file “admin-token” of the data folder. It stays in the memory of this tab."
        prefix=""
        notice={notice}
        onSubmit={submit}
        footer={<Links />}
      />
    );
  }
  return (
    <Toasts>
      <Frame
        sections={SECTIONS}
        current="accounts"
        identity="Operator"
        onSignOut={() => end(undefined)}
        footer={<Links />}
      >
        <AccountsSection operator={operator} />
      </Frame>
    </Toasts>
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
