// Calls the server with the client that openapi-generator generated from its document.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"

	"vx.test/openapi-generator/openapi"
)

func main() {
	ctx := context.WithValue(context.Background(), openapi.ContextAccessToken, os.Getenv("VX_KEY"))
	configuration := openapi.NewConfiguration()
	configuration.Servers = openapi.ServerConfigurations{{URL: os.Getenv("VX_URL")}}
	client := openapi.NewAPIClient(configuration)

	text := "What is a ledger?"
	message := openapi.NewMessageInput("user")
	message.SetContent(text)
	request := openapi.NewGenerateRequest("vx-sandbox-small", []openapi.MessageInput{*message})
	generated, _, err := client.GenerateServiceAPI.Generate(ctx).GenerateRequest(*request).Execute()
	check(err)

	chatMessage := openapi.NewChatMessageInput("user")
	chatMessage.SetContent(openapi.ChatMessageInputContent{String: &text})
	chatRequest := openapi.NewCreateChatCompletionRequest(request.Model, []openapi.ChatMessageInput{*chatMessage})
	chat, _, err := client.ChatServiceAPI.CreateChatCompletion(ctx).CreateChatCompletionRequest(*chatRequest).Execute()
	check(err)

	request.Model = "none"
	_, _, err = client.GenerateServiceAPI.Generate(ctx).GenerateRequest(*request).Execute()
	var failure *openapi.GenericOpenAPIError
	if !errors.As(err, &failure) {
		log.Fatalf("not an error of the server: %v", err)
	}
	refused := failure.Model().(openapi.ErrorBody)

	ledger, _, err := client.LedgerServiceAPI.ListEntries(ctx).PageSize(1).Execute()
	check(err)

	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"generated": generated.Message.Get().Content.Get(),
		"chat":      chat.Choices[0].Message.Get().Content.Get(),
		"refused":   refused.Error.Code,
		"ledger":    ledger.Entries[0].Kind,
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
