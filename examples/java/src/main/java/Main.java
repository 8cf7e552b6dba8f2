import com.google.protobuf.Any;
import com.google.rpc.ErrorInfo;
import com.vx.v1.GenerateRequest;
import com.vx.v1.GenerateServiceGrpc;
import com.vx.v1.Message;
import com.vx.v1.StreamGenerateRequest;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyChannelBuilder;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.MetadataUtils;

/** Generates a reply, streams one, and handles a balance that is too low. */
public final class Main {
  public static void main(String[] arguments) throws Exception {
    // For a server with TLS, leave out usePlaintext().
    ManagedChannel channel = NettyChannelBuilder.forTarget(System.getenv("VX_HOST_AND_PORT")).usePlaintext().build();
    Metadata headers = new Metadata();
    headers.put(
        Metadata.Key.of("authorization", Metadata.ASCII_STRING_MARSHALLER), "Bearer " + System.getenv("VX_KEY"));
    GenerateServiceGrpc.GenerateServiceBlockingStub service =
        GenerateServiceGrpc.newBlockingStub(channel)
            .withInterceptors(MetadataUtils.newAttachHeadersInterceptor(headers));
    Message question = Message.newBuilder().setRole("user").setContent("What is a ledger?").build();
    String model = "vx-sandbox-small";
    try {
      GenerateRequest request = GenerateRequest.newBuilder().setModel(model).addMessages(question).build();
      System.out.println(service.generate(request).getMessage().getContent());

      StreamGenerateRequest streamed =
          StreamGenerateRequest.newBuilder().setModel(model).addMessages(question).build();
      service
          .streamGenerate(streamed)
          .forEachRemaining(event -> {
            if (event.hasDelta()) System.out.print(event.getDelta().getContent());
            else System.out.println("\n" + event.getDone().getUsage().getCost());
          });
    } catch (StatusRuntimeException error) {
      if (!reasonOf(error).equals("INSUFFICIENT_BALANCE")) throw error;
      System.out.println("Add credit to the account.");
    } finally {
      channel.shutdownNow();
    }
  }

  /** The reason of the server. Empty if the error is not of the server. */
  private static String reasonOf(StatusRuntimeException error) throws Exception {
    for (Any detail : StatusProto.fromThrowable(error).getDetailsList()) {
      if (detail.is(ErrorInfo.class)) return detail.unpack(ErrorInfo.class).getReason();
    }
    return "";
  }
}
