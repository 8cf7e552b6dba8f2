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
import { file_google_rpc_error_details } from "../../../gen/google/rpc/error_details_pb.js";
import * as v1 from "../../../gen/grpc/reflection/v1/reflection_pb.js";
import * as v1alpha from "../../../gen/grpc/reflection/v1alpha/reflection_pb.js";

type ReflectionResult = Omit<MessageInitShape<typeof v1.ServerReflectionResponseSchema>, "$typeName">["messageResponse"];

/** Everything that reflection returns. It is built once, because anyone may request it, but not at the start, because few do. */
type ReflectionIndex = {
  readonly services: ReflectionResult;
  readonly registry: Registry;
  /** Each file by its name, with all its imports, which a client needs to resolve it. */
  readonly files: ReadonlyMap<string, ReflectionResult>;
  readonly extensions: ReadonlyMap<string, readonly number[]>;
};

/** Server reflection v1 and v1alpha, so that grpcurl and the like need no .proto. */
export function bindReflection(router: ConnectRouter, services: readonly DescService[]): void {
  let index: ReflectionIndex | undefined;
  const result = (request: v1.ServerReflectionRequest["messageRequest"]) => {
    index ??= buildIndex(services);
    return reflect(request, index);
  };

  async function* serverReflectionInfo(requests: AsyncIterable<v1.ServerReflectionRequest>) {
    for await (const request of requests) {
      yield {
        validHost: request.host,
        originalRequest: request,
        messageResponse: result(request.messageRequest) as never,
      };
    }
  }
  router.service(v1.ServerReflection, { serverReflectionInfo });
  // The two versions differ only in their name.
  router.service(v1alpha.ServerReflection, { serverReflectionInfo: serverReflectionInfo as never });
}

function buildIndex(services: readonly DescService[]): ReflectionIndex {
  const files = new Map<string, DescFile>();
  for (const service of services) collect(service.file, files);
  // Services do not refer to them, but every error contains some.
  collect(file_google_rpc_error_details, files);
  const bytes = new Map([...files].map(([name, { proto }]) => [name, toBinary(FileDescriptorProtoSchema, proto)] as const));
  const withImports = (file: DescFile) => [...collect(file, new Map()).keys()].map((name) => bytes.get(name) as Uint8Array);
  const registry = createRegistry(...files.values());
  const extensions = new Map<string, number[]>();
  for (const desc of registry) {
    if (desc.kind !== "extension") continue;
    const { typeName } = desc.extendee;
    extensions.set(typeName, [...(extensions.get(typeName) ?? []), desc.number]);
  }
  return {
    services: {
      case: "listServicesResponse",
      value: { service: services.map(({ typeName }) => ({ name: typeName })) },
    },
    registry,
    files: new Map(
      [...files].map(([name, file]) => [
        name,
        { case: "fileDescriptorResponse", value: { fileDescriptorProto: withImports(file) } },
      ]),
    ),
    extensions,
  };
}

function reflect(request: v1.ServerReflectionRequest["messageRequest"], index: ReflectionIndex): ReflectionResult {
  const { registry } = index;
  switch (request.case) {
    case "listServices":
      return index.services;
    case "fileByFilename":
      return index.files.get(request.value) ?? notFound(request.value);
    case "fileContainingSymbol":
      return fileResult(fileOfSymbol(request.value, registry), index, request.value);
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      const message = registry.getMessage(containingType);
      const extension = message && registry.getExtensionFor(message, extensionNumber);
      return fileResult(extension?.file, index, `${containingType} ${extensionNumber}`);
    }
    case "allExtensionNumbersOfType": {
      if (!registry.getMessage(request.value)) return notFound(request.value);
      const extensionNumber = [...(index.extensions.get(request.value) ?? [])];
      return { case: "allExtensionNumbersResponse", value: { baseTypeName: request.value, extensionNumber } };
    }
    default:
      return {
        case: "errorResponse",
        value: { errorCode: Code.InvalidArgument, errorMessage: "The request has no message_request." },
      };
  }
}

function fileResult(file: DescFile | undefined, { files }: ReflectionIndex, name: string): ReflectionResult {
  return (file && files.get(file.proto.name)) ?? notFound(name);
}

function collect(file: DescFile, files: Map<string, DescFile>): Map<string, DescFile> {
  const name = file.proto.name;
  if (!files.has(name)) {
    files.set(name, file);
    for (const dependency of file.dependencies) collect(dependency, files);
  }
  return files;
}

/** A symbol may also name a method, a field or an enum value; the file is then that of its parent. */
function fileOfSymbol(symbol: string, registry: Registry): DescFile | undefined {
  const desc = registry.get(symbol) ?? registry.get(symbol.slice(0, Math.max(0, symbol.lastIndexOf("."))));
  return desc?.file;
}

function notFound(name: string): ReflectionResult {
  return { case: "errorResponse", value: { errorCode: Code.NotFound, errorMessage: `not found: ${name}` } };
}
