import com.google.gson.JsonParser;
import java.util.List;
import java.util.Map;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.JSON;
import org.openapitools.client.api.ChatServiceApi;
import org.openapitools.client.api.GenerateServiceApi;
import org.openapitools.client.api.LedgerServiceApi;
import org.openapitools.client.model.ChatMessageInput;
import org.openapitools.client.model.ChatMessageInputContent;
import org.openapitools.client.model.CreateChatCompletionRequest;
import org.openapitools.client.model.GenerateRequest;
import org.openapitools.client.model.MessageInput;

/** Calls the server with the client that openapi-generator generated from its document. */
public class Call {
  public static void main(String[] args) throws ApiException {
    ApiClient client = new ApiClient();
    client.setBasePath(System.getenv("VX_URL"));
    client.setBearerToken(System.getenv("VX_KEY"));
    GenerateServiceApi api = new GenerateServiceApi(client);

    String text = "What is a ledger?";
    MessageInput message = new MessageInput().role(MessageInput.RoleEnum.USER).content(text);
    GenerateRequest request = new GenerateRequest().model("vx-sandbox-small").messages(List.of(message));
    String generated = api.generate(request, null).getMessage().getContent();

    ChatMessageInput chatMessage =
        new ChatMessageInput().role(ChatMessageInput.RoleEnum.USER).content(new ChatMessageInputContent(text));
    CreateChatCompletionRequest chatRequest =
        new CreateChatCompletionRequest().model(request.getModel()).messages(List.of(chatMessage));
    String chat =
        new ChatServiceApi(client).createChatCompletion(chatRequest, null).getChoices().get(0).getMessage().getContent();

    String kind =
        new LedgerServiceApi(client).listEntries(1, null, null, null, null, null, null).getEntries().get(0).getKind();

    System.out.println(
        JSON.getGson().toJson(Map.of("generated", generated, "chat", chat, "refused", refusal(api, request), "ledger", kind)));
  }

  private static String refusal(GenerateServiceApi api, GenerateRequest request) {
    try {
      api.generate(request.model("none"), null);
      return "accepted";
    } catch (ApiException failure) {
      return JsonParser.parseString(failure.getResponseBody())
          .getAsJsonObject().getAsJsonObject("error").get("code").getAsString();
    }
  }
}
