import { ResponsesService } from "../../../gen/vx/openai/v1/responses_pb.js";
import { defineService } from "../../api/define-service.ts";
import { RESPONSES } from "../../rules/compatible-members.ts";
import { ResponseEvents } from "./events.ts";
import { itemsOf } from "./items.ts";
import { finishedResponse, isIncomplete, settingsOf } from "./reply.ts";
import { generationRequestOfResponses, includesEncryptedReasoning } from "./request.ts";

export const responsesService = defineService(
  ResponsesService,
  {
    createResponse: {
      prompt: (_, request) => generationRequestOfResponses(request),
      respond: (reply, request, { options }) => {
        const shown = { isIncomplete: isIncomplete(reply), isEncryptedIncluded: includesEncryptedReasoning(request) };
        return finishedResponse(reply, itemsOf(reply.id, reply.output, shown), settingsOf(request, options));
      },
    },
    streamResponse: {
      prompt: (_, request) => generationRequestOfResponses(request),
      /** An error before the first event is an ordinary response; after it, the response fails. */
      respond: async function* (pieces, request, { options }) {
        const isEncryptedIncluded = includesEncryptedReasoning(request);
        const settings = settingsOf(request, options);
        let events: ResponseEvents | undefined;
        try {
          for await (const piece of pieces) {
            if (!events) {
              const { id: generationId, model } = piece.kind === "delta" ? piece : piece.reply;
              events = new ResponseEvents({ generationId, model, settings, isEncryptedIncluded });
              yield* events.start();
            }
            yield* piece.kind === "delta" ? events.append(piece.delta) : events.end(piece.reply);
          }
        } catch (error) {
          if (events) yield events.failed(error);
          throw error;
        }
      },
    },
  },
  RESPONSES,
);
