import { ROLES } from "../domain/operator.ts";
import { callAndShow, callAndShowSecret } from "./client.ts";
import { operatorColumns } from "./columns.ts";
import {
  callCommand,
  type Define,
  type JsonOption,
  type ReasonOption,
  reasonOption,
  requiredOption,
  withExamples,
} from "./command.ts";
import { usageFailure } from "./failure.ts";
import { addListOptions, callAndPrintList, type ListOptions } from "./list.ts";
import { visible } from "./output.ts";
import { tableOf } from "./print.ts";

export const define: Define = (group) => {
  withExamples(group, ["vx operators create --name ada --role support", "vx operators list"]);
  const creating = callCommand(group, "create", "Create an operator. The token is shown only once.", [
    "vx operators create --name ada --role support",
  ]);
  reasonOption(creating);
  requiredOption(creating, "--name <name>", "the name of the operator");
  requiredOption(creating, "--role <role>", `the role: ${ROLES.join(", ")}`, roleOf("--role"))
    .option("--email <email>", "the address with which the operator signs in to the console")
    .action(create);
  addListOptions(callCommand(group, "list", "List operators, newest first.", ["vx operators list"])).action(list);
  reasonOption(
    callCommand(group, "set-role", "Change the role of an operator immediately.", ["vx operators set-role op_… finance"]),
  )
    .argument("<operator_id>", "the id of the operator")
    .argument("<role>", `the new role: ${ROLES.join(", ")}`, roleOf("role"))
    .action(setRole);
  reasonOption(
    callCommand(group, "revoke", "Revoke the token of an operator immediately and permanently.", ["vx operators revoke op_…"]),
  )
    .argument("<operator_id>", "the id of the operator")
    .action(revoke);
};

function roleOf(parameter: string): (text: string) => string {
  return (text) => {
    if (ROLES.some((role) => role === text)) return text;
    throw usageFailure(`${parameter}: must be one of ${ROLES.join(", ")}, not ${JSON.stringify(text)}`);
  };
}

type CreateOptions = JsonOption & ReasonOption & { name: string; role: string; email?: string };

async function create(options: CreateOptions): Promise<void> {
  const { name, role, email = "", reason = "" } = options;
  const request = { name, role, email, reason };
  await callAndShowSecret(options, "createOperator", request, ({ operator }) => ({
    table: tableOf(operatorColumns, operator),
    lost: `the operator ${visible(operator?.id ?? "")} was created, but its token could not be printed: revoke it`,
    note: "The token is shown only once. Set it as VX_ADMIN_TOKEN to use it.",
  }));
}

async function list(options: ListOptions): Promise<void> {
  await callAndPrintList(options, "listOperators", {
    request: {},
    rows: (page) => page.operators,
    columns: operatorColumns,
    none: "There are no operators.",
  });
}

async function setRole(operatorId: string, role: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "setOperatorRole", { operatorId, role, reason }, ({ operator }) =>
    tableOf(operatorColumns, operator),
  );
}

async function revoke(operatorId: string, options: JsonOption & ReasonOption): Promise<void> {
  const { reason = "" } = options;
  await callAndShow(options, "revokeOperator", { operatorId, reason }, ({ operator }) => tableOf(operatorColumns, operator));
}
