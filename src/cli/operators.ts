import { type Operator, OperatorSchema } from "../../gen/vx/admin/v1/admin_pb.js";
import { ROLES } from "../domain/operator.ts";
import { call, list } from "./call.ts";
import { usageFailure } from "./failure.ts";
import { visible } from "./output.ts";
import { argument, option, REASON, required } from "./parameters.ts";
import { columnsOf } from "./print.ts";
import { noun } from "./row.ts";
import type { Parser } from "./values.ts";

const columns = columnsOf(OperatorSchema, "id, name, role, state, createdAt, revokedAt, lastUsedAt, email", {
  "of sign-ins to the console": "identityBound",
});

const ROLE_TEXT = `role: ${ROLES.join(", ")}`;
const role: Parser<string> = (text, name) => {
  if (ROLES.some((known) => known === text)) return text;
  throw usageFailure(`${name.replace(/[<>]/g, "")}: must be one of ${ROLES.join(", ")}, not ${JSON.stringify(text)}`);
};
const OF_OPERATOR = { reason: REASON, operatorId: argument("<operator_id>", "the id of the operator") };
const created = {
  note: () => "The token is shown only once. Set it as VX_ADMIN_TOKEN to use it.",
  lost: ({ operator }: { readonly operator?: Operator | undefined }) =>
    `the operator ${visible(operator?.id ?? "")} was created, but its token could not be printed: revoke it`,
};

export const row = noun(["create --name ada --role support", "list"], {
  create: call("createOperator", columns, {
    about: "Create an operator. The token is shown only once.",
    fields: {
      reason: REASON,
      name: required("--name <name>", "the name of the operator"),
      role: required("--role <role>", `the ${ROLE_TEXT}`, role),
      email: option("--email <email>", "the address with which the operator signs in to the console"),
    },
    ...created,
    examples: ["--name ada --role support"],
  }),
  list: list("listOperators", columns, {
    about: "List operators, newest first.",
    none: "There are no operators.",
    fields: {},
    examples: [""],
  }),
  "set-role": call("setOperatorRole", columns, {
    about: "Change the role of an operator immediately.",
    fields: { ...OF_OPERATOR, role: argument("<role>", `the new ${ROLE_TEXT}`, role) },
    examples: ["op_… finance"],
  }),
  revoke: call("revokeOperator", columns, {
    about: "Revoke the token of an operator immediately and permanently.",
    fields: OF_OPERATOR,
    examples: ["op_…"],
  }),
});
