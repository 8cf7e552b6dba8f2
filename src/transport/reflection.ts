import {
  createRegistry,
  type DescFile,
  type DescService,
  type MessageInitShape,
  type Registry,
  toBinary,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import { Code, type ConnectRouter } from "@connectrpc/connect";
import * as v1 from "../../gen/grpc/reflection/v1/reflection_pb.js";
import * as v1alpha from "../../gen/grpc/reflection/v1alpha/reflection_pb.js";

type Answer = Omit<
  MessageInitShape<typeof v1.ServerReflectionResponseSchema>,
  "$typeName"
>["messageResponse"];

/** Server reflection v1 and v1alpha, so that grpcurl and the like need no .proto. */
export function bindReflection(router: ConnectRouter, services: readonly DescService[]): void {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  const registry = createRegistry(...files.values());
  const answer = (request: v1.ServerReflectionRequest["messageRequest"]) =>
    reflect(request, services, files, registry);

  router.service(v1.ServerReflection, {
    async *serverReflectionInfo(requests: AsyncIterable<v1.ServerReflectionRequest>) {
      for await (const request of requests) {
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(request.messageRequest) as never,
        };
      }
    },
  });
  router.service(v1alpha.ServerReflection, {
    async *serverReflectionInfo(requests: AsyncIterable<v1alpha.ServerReflectionRequest>) {
      for await (const request of requests) {
        // The two versions differ in their name only.
        const messageRequest =
          request.messageRequest as unknown as v1.ServerReflectionRequest["messageRequest"];
        yield {
          validHost: request.host,
          originalRequest: request,
          messageResponse: answer(messageRequest) as never,
        };
      }
    },
  });
}

function reflect(
  request: v1.ServerReflectionRequest["messageRequest"],
  services: readonly DescService[],
  files: ReadonlyMap<string, DescFile>,
  registry: Registry,
): Answer {
  switch (request.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: services.map(({ typeName }) => ({ name: typeName })) },
      };
    case "fileByFilename":
      return fileAnswer(files.get(request.value), request.value);
    case "fileContainingSymbol":
      return fileAnswer(fileOfSymbol(request.value, registry), request.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      const message = registry.getMessage(containingType);
      const extension = message && registry.getExtensionFor(message, extensionNumber);
      return fileAnswer(extension?.file, `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      const extensions = [...registry].filter(
        (desc) => desc.kind === "extension" && desc.extendee.typeName === request.value,
      );
      if (!registry.getMessage(request.value)) return notFound(request.value);
      const extensionNumber = extensions.flatMap((desc) => (desc.kind === "extension" ? [desc.number] : []));
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: request.value, extensionNumber } };
    }
    default:
      return {
        case: "errorResponse",
        value: { errorCode: Code.InvalidArgument, errorMessage: "nothing was asked" },
      };
  }
}

/** A file with all it imports: what a caller needs to make sense of it. */
function fileAnswer(file: DescFile | undefined, asked: string): Answer {
  if (!file) return notFound(asked);
  const closure = collect(file, new Map());
  const fileDescriptorProto = [...closure.values()].map(({ proto }) =>
    toBinary(FileDescriptorProtoSchema, proto),
  );
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

function collect(file: DescFile, files: Map<string, DescFile>): Map<string, DescFile> {
  const name = file.proto.name;
  if (!files.has(name)) {
    files.set(name, file);
    for (const dependency of file.dependencies) collect(dependency, files);
  }
  return files;
}

/** A symbol may also name a method, a field or an enum value: then its parent's file is meant. */
function fileOfSymbol(symbol: string, registry: Registry): DescFile | undefined {
  const desc = registry.get(symbol) ?? registry.get(symbol.slice(0, Math.max(0, symbol.lastIndexOf("."))));
  return desc?.file;
}

function notFound(asked: string): Answer {
  return { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage: `not found: ${asked}` } };
}
