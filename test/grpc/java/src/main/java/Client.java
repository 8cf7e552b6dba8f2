import com.google.gson.Gson;
import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.protobuf.Message;
import com.google.rpc.BadRequest;
import com.google.rpc.ErrorInfo;
import com.vx.v1.ContentPart;
import com.vx.v1.EmbedRequest;
import com.vx.v1.EmbedResponse;
import com.vx.v1.EmbedServiceGrpc;
import com.vx.v1.GenerateRequest;
import com.vx.v1.GenerateResponse;
import com.vx.v1.GenerateServiceGrpc;
import com.vx.v1.GetMeRequest;
import com.vx.v1.GetMeResponse;
import com.vx.v1.Image;
import com.vx.v1.MeServiceGrpc;
import com.vx.v1.StreamGenerateRequest;
import com.vx.v1.StreamGenerateResponse;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientInterceptors;
import io.grpc.Context;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashSet;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntConsumer;

/**
 * Calls the server with grpc-java, and prints what it receives as JSON. The test says when the server stops and starts
 * again.
 */
public final class Client {
  private static final String MODEL = "vx-sandbox-small";
  private static final BufferedReader LINES = new BufferedReader(new InputStreamReader(System.in));
  private static final CallOptions USUAL = CallOptions.DEFAULT;
  private static final IntConsumer NOTHING = pieces -> {};

  private final ManagedChannel connection;
  private final String key;

  private Client(String address, String key) {
    this.connection =
        NettyChannelBuilder.forTarget(address)
            .usePlaintext()
            .maxInboundMessageSize(64 << 20)
            .keepAliveTime(10, TimeUnit.SECONDS)
            .keepAliveWithoutCalls(true)
            .build();
    this.key = key;
  }

  public static void main(String[] arguments) throws Exception {
    Client client = new Client(arguments[1], arguments[2]);
    ExecutorService threads = Executors.newCachedThreadPool();
    CompletableFuture<Object> keepAlive =
        CompletableFuture.supplyAsync(() -> client.stream("[[tokens=8 delay_ms=6000]]", "", USUAL, NOTHING), threads);
    Map<String, Object> results = new LinkedHashMap<>();
    results.put("unary", client.unary());
    results.put("generate", client.generate(USUAL));
    results.put("stream", client.stream("[[tokens=40]] hello", "", USUAL, NOTHING));
    results.put("errors", client.errors(new Client(arguments[1], "vx_live_x")));
    results.put("streamError", client.stream("[[tokens=40 fail_after=8]]", "", USUAL, NOTHING));
    results.put("deadline", client.deadline());
    results.put("cancel", client.cancel());
    results.put("replay", client.replay());
    results.put("large", client.large());
    results.put("gzip", client.generate(USUAL.withCompression("gzip")));
    results.put("concurrent", client.concurrent(threads));
    results.put("keepAlive", keepAlive.get());
    results.put("drain", client.drain());
    System.out.println("drained");
    LINES.readLine();
    CallOptions waiting = USUAL.withWaitForReady().withDeadlineAfter(30, TimeUnit.SECONDS);
    results.put("reconnect", Map.of("code", codeOf(client.failureOf(() -> client.getMe(waiting)))));
    System.out.println(new Gson().toJson(results));
    System.exit(0);
  }

  /** A channel whose calls have the key and these headers, and keep the headers of the response. */
  private Channel channel(Map<String, String> headers, AtomicReference<Metadata> received) {
    Metadata metadata = new Metadata();
    metadata.put(header("authorization"), "Bearer " + key);
    headers.forEach((name, value) -> metadata.put(header(name), value));
    return ClientInterceptors.intercept(
        connection,
        MetadataUtils.newAttachHeadersInterceptor(metadata),
        MetadataUtils.newCaptureMetadataInterceptor(received, new AtomicReference<>()));
  }

  private static Metadata.Key<String> header(String name) {
    return Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER);
  }

  private <I, O> O call(MethodDescriptor<I, O> method, I request, CallOptions options) {
    return ClientCalls.blockingUnaryCall(channel(Map.of(), new AtomicReference<>()), method, options, request);
  }

  private GetMeResponse getMe(CallOptions options) {
    return call(MeServiceGrpc.getGetMeMethod(), GetMeRequest.getDefaultInstance(), options);
  }

  /** The error of the call; null if it succeeds. */
  private StatusRuntimeException failureOf(Runnable call) {
    try {
      call.run();
      return null;
    } catch (StatusRuntimeException error) {
      return error;
    }
  }

  private static String codeOf(StatusRuntimeException error) {
    return error == null ? "OK" : error.getStatus().getCode().name();
  }

  private static <T extends Message> List<T> detailsOf(StatusRuntimeException error, Class<T> type) {
    List<T> found = new ArrayList<>();
    if (error == null) return found;
    try {
      for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
        if (detail.is(type)) found.add(detail.unpack(type));
      }
    } catch (InvalidProtocolBufferException invalid) {
      throw new IllegalStateException(invalid);
    }
    return found;
  }

  private static String reasonOf(StatusRuntimeException error) {
    for (ErrorInfo info : detailsOf(error, ErrorInfo.class)) return info.getDomain() + " " + info.getReason();
    return "";
  }

  private static GenerateRequest request(String model, String text) {
    return GenerateRequest.newBuilder().setModel(model).addMessages(message(text)).build();
  }

  private static com.vx.v1.Message.Builder message(String text) {
    return com.vx.v1.Message.newBuilder().setRole("user").setContent(text);
  }

  private Object unary() {
    AtomicReference<Metadata> received = new AtomicReference<>();
    Channel channel = channel(Map.of("x-request-id", "my-unary"), received);
    GetMeResponse response =
        ClientCalls.blockingUnaryCall(channel, MeServiceGrpc.getGetMeMethod(), USUAL, GetMeRequest.getDefaultInstance());
    String requestId = received.get().get(header("x-request-id"));
    return Map.of("code", "OK", "plan", response.getPlan(), "requestId", requestId);
  }

  private Object generate(CallOptions options) {
    GenerateResponse response = call(GenerateServiceGrpc.getGenerateMethod(), request(MODEL, "hello"), options);
    String text = response.getMessage().getContent();
    return Map.of("code", "OK", "text", text, "output", response.getUsage().getOutputTokens());
  }

  private Map<String, Object> stream(String text, String requestId, CallOptions options, IntConsumer onPiece) {
    Map<String, String> headers = requestId.isEmpty() ? Map.of() : Map.of("x-request-id", requestId);
    StreamGenerateRequest request = StreamGenerateRequest.newBuilder().setModel(MODEL).addMessages(message(text)).build();
    int pieces = 0;
    boolean done = false;
    StatusRuntimeException failure = null;
    try {
      Iterator<StreamGenerateResponse> responses =
          ClientCalls.blockingServerStreamingCall(
              channel(headers, new AtomicReference<>()),
              GenerateServiceGrpc.getStreamGenerateMethod(),
              options,
              request);
      while (responses.hasNext()) {
        if (responses.next().hasDone()) done = true;
        else onPiece.accept(++pieces);
      }
    } catch (StatusRuntimeException error) {
      failure = error;
    }
    return Map.of("code", codeOf(failure), "pieces", pieces, "done", done, "reason", reasonOf(failure));
  }

  private Object errors(Client withoutKey) {
    MethodDescriptor<GenerateRequest, GenerateResponse> method = GenerateServiceGrpc.getGenerateMethod();
    StatusRuntimeException unknown = failureOf(() -> call(method, request("no-such-model", "hello"), USUAL));
    GenerateRequest empty = GenerateRequest.newBuilder().setModel(MODEL).build();
    StatusRuntimeException invalid = failureOf(() -> call(method, empty, USUAL));
    StatusRuntimeException noKey = failureOf(() -> withoutKey.getMe(USUAL));
    List<String> fields = new ArrayList<>();
    for (BadRequest bad : detailsOf(invalid, BadRequest.class)) {
      bad.getFieldViolationsList().forEach(violation -> fields.add(violation.getField()));
    }
    return Map.of(
        "unknown", List.of(codeOf(unknown), reasonOf(unknown)),
        "invalid", List.of(codeOf(invalid), reasonOf(invalid), fields),
        "noKey", List.of(codeOf(noKey), reasonOf(noKey)));
  }

  private Object deadline() {
    CallOptions options = USUAL.withDeadlineAfter(2, TimeUnit.SECONDS);
    Map<String, Object> late = stream("[[tokens=400 delay_ms=100]]", "my-deadline", options, NOTHING);
    return Map.of("code", late.get("code"), "somePieces", (int) late.get("pieces") > 0);
  }

  private Object cancel() throws Exception {
    Context.CancellableContext context = Context.current().withCancellation();
    IntConsumer leave = pieces -> {
      if (pieces == 2) context.cancel(null);
    };
    return context.call(() -> stream("[[tokens=400 delay_ms=50]]", "my-cancellation", USUAL, leave));
  }

  private Object replay() {
    Set<String> ids = new HashSet<>();
    List<String> replayed = new ArrayList<>();
    for (int i = 0; i < 2; i++) {
      AtomicReference<Metadata> received = new AtomicReference<>();
      Channel channel = channel(Map.of("idempotency-key", "key of grpc-java"), received);
      MethodDescriptor<GenerateRequest, GenerateResponse> method = GenerateServiceGrpc.getGenerateMethod();
      ids.add(ClientCalls.blockingUnaryCall(channel, method, USUAL, request(MODEL, "hello")).getId());
      String value = received.get().get(header("idempotency-replayed"));
      replayed.add(value == null ? "" : value);
    }
    return Map.of("ids", ids.size(), "replayed", replayed);
  }

  /** Sends and receives a message of more than 5 MB. */
  private Object large() {
    byte[] start = {(byte) 0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
    ByteString data = ByteString.copyFrom(start).concat(ByteString.copyFrom(new byte[5 << 20]));
    ContentPart.Builder text = ContentPart.newBuilder().setText("What is this?");
    ContentPart.Builder image = ContentPart.newBuilder().setImage(Image.newBuilder().setData(data));
    GenerateRequest request =
        GenerateRequest.newBuilder()
            .setModel(MODEL)
            .addMessages(com.vx.v1.Message.newBuilder().setRole("user").addParts(text).addParts(image))
            .build();
    StatusRuntimeException sent = failureOf(() -> call(GenerateServiceGrpc.getGenerateMethod(), request, USUAL));
    EmbedRequest texts =
        EmbedRequest.newBuilder()
            .setModel("vx-sandbox-embed")
            .addAllInput(Collections.nCopies(512, "a"))
            .setDimensions(2_600)
            .build();
    EmbedResponse response = call(EmbedServiceGrpc.getEmbedMethod(), texts, USUAL);
    int values = response.getEmbeddingsList().stream().mapToInt(one -> one.getValuesCount()).sum();
    return Map.of("sent", codeOf(sent), "received", "OK", "values", values);
  }

  /** More calls at once than the server allows on one connection. */
  private Object concurrent(ExecutorService threads) {
    List<CompletableFuture<Object>> calls = new ArrayList<>();
    for (int i = 0; i < 300; i++) {
      calls.add(CompletableFuture.supplyAsync(() -> codeOf(failureOf(() -> getMe(USUAL))), threads));
      calls.add(CompletableFuture.supplyAsync(() -> stream("[[tokens=12]]", "", USUAL, NOTHING).get("code"), threads));
    }
    Map<Object, Integer> counts = new TreeMap<>();
    calls.forEach(call -> counts.merge(call.join(), 1, Integer::sum));
    return Map.of("counts", counts);
  }

  /** Starts a stream, and another call after the server was told to stop. */
  private Object drain() {
    AtomicReference<String> during = new AtomicReference<>();
    IntConsumer callOnce = pieces -> {
      if (pieces > 1) return;
      System.out.println("streaming");
      try {
        LINES.readLine();
      } catch (IOException ended) {
        throw new IllegalStateException(ended);
      }
      during.set(codeOf(failureOf(() -> getMe(USUAL))));
    };
    Map<String, Object> streamed = stream("[[tokens=120 delay_ms=100]]", "", USUAL, callOnce);
    int messages = (int) streamed.get("pieces") + ((boolean) streamed.get("done") ? 1 : 0);
    return Map.of("code", streamed.get("code"), "pieces", messages, "during", during.get());
  }
}
