import { accountService } from "../accounts/service.ts";
import { modelsService } from "../anthropic/models-service.ts";
import { messagesService } from "../anthropic/service.ts";
import type { ServiceDefinition } from "../api/define-service.ts";
import { eventService } from "../events/service.ts";
import { failureService } from "../failures/service.ts";
import { modelService } from "../generations/model-service.ts";
import { embedService, generateService } from "../generations/service.ts";
import { meService } from "../keys/me-service.ts";
import { keyService } from "../keys/service.ts";
import { ledgerService } from "../ledger/service.ts";
import { statementService } from "../ledger/statement-service.ts";
import { limitService } from "../limits/service.ts";
import { chatService } from "../openai/chat/service.ts";
import { completionsService } from "../openai/completions-service.ts";
import { embeddingsService } from "../openai/embeddings-service.ts";
import { responsesService } from "../openai/responses/service.ts";
import { consoleService, type OperatorDeps } from "../operators/console-service.ts";
import { adminService } from "../operators/service.ts";
import { topUpService } from "../payments/service.ts";
import { usageService } from "../usage/service.ts";
import { webhookService } from "../webhooks/service.ts";

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
