// Calls the server with the client that oapi-codegen generated from its document.
package main

import (
	"context"
	"encoding/json"
	"log"
	"net/http"
	"os"

	"vx.test/generated/vx"
)

func main() {
	ctx := context.Background()
	authorize := func(_ context.Context, request *http.Request) error {
		request.Header.Set("Authorization", "Bearer "+os.Getenv("VX_KEY"))
		return nil
	}
	client, err := vx.NewClientWithResponses(os.Getenv("VX_URL"), vx.WithRequestEditorFn(authorize))
	check(err)

	text := "What is a ledger?"
	request := vx.GenerateRequest{
		Model:    "vx-sandbox-small",
		Messages: []vx.MessageInput{{Role: vx.MessageInputRoleUser, Content: &text}},
	}
	generated, err := client.GenerateWithResponse(ctx, nil, request)
	check(err)

	var content vx.ChatMessageInput_Content
	check(content.FromChatMessageInputContent0(text))
	message := vx.ChatMessageInput{Role: vx.ChatMessageInputRoleUser, Content: &content}
	chat, err := client.CreateChatCompletionWithResponse(ctx, nil, vx.CreateChatCompletionRequest{
		Model:    request.Model,
		Messages: []vx.ChatMessageInput{message},
	})
	check(err)

	request.Model = "none"
	refused, err := client.GenerateWithResponse(ctx, nil, request)
	check(err)

	pageSize := int32(1)
	ledger, err := client.ListEntriesWithResponse(ctx, &vx.ListEntriesParams{PageSize: &pageSize})
	check(err)

	check(json.NewEncoder(os.Stdout).Encode(map[string]any{
		"generated": generated.JSON200.Message.Content,
		"chat":      chat.JSON200.Choices[0].Message.Content,
		"refused":   refused.JSON404.Error.Code,
		"ledger":    ledger.JSON200.Entries[0].Kind,
	}))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
