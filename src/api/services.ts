import { accountService } from "./account-service.ts";
import { adminService } from "./admin-service.ts";
import { chatService } from "./chat/service.ts";
import { completionsService } from "./completions-service.ts";
import { consoleService, type OperatorDeps } from "./console-service.ts";
import type { ServiceDefinition } from "./define-service.ts";
import { embeddingsService, embedService } from "./embeddings-service.ts";
import { eventService } from "./event-service.ts";
import { failureService } from "./failure-service.ts";
import { generateService } from "./generate/service.ts";
import { keyService } from "./key-service.ts";
import { ledgerService } from "./ledger-service.ts";
import { limitService } from "./limit-service.ts";
import { meService } from "./me-service.ts";
import { modelsService } from "./messages/models-service.ts";
import { messagesService } from "./messages/service.ts";
import { modelService } from "./model-service.ts";
import { responsesService } from "./responses/service.ts";
import { statementService } from "./statement-service.ts";
import { topUpService } from "./top-up-service.ts";
import { usageService } from "./usage/service.ts";
import { webhookService } from "./webhook-service.ts";

/** The developer API, in the order of the OpenAPI document. Every protocol and the health checks use this list. */
export const DEVELOPER_SERVICES: readonly ServiceDefinition[] = [
  generateService,
  chatService,
  responsesService,
  messagesService,
  embedService,
  embeddingsService,
  completionsService,
  modelService,
  modelsService,
  meService,
  accountService,
  keyService,
  limitService,
  ledgerService,
  usageService,
  statementService,
  failureService,
  topUpService,
  eventService,
  webhookService,
];

export const OPERATOR_SERVICES: readonly ServiceDefinition<OperatorDeps>[] = [adminService, consoleService];

export const developerServices = DEVELOPER_SERVICES.map(({ service }) => service);
export const operatorServices = OPERATOR_SERVICES.map(({ service }) => service);
