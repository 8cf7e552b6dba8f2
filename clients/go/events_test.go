package vx_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"

	vx "github.com/vx-api/vx/clients/go"
	vxv1 "github.com/vx-api/vx/clients/go/gen/vx/v1"
)

var keyCreated = []string{"key.created"}

func createKeys(c *vx.Client, count int) (ids []string) {
	for range count {
		id := must(c.CreateKey(ctx, &vxv1.CreateKeyRequest{Name: run + "-event"})).GetApiKey().GetId()
		must(c.RevokeKey(ctx, id))
		ids = append(ids, id)
	}
	return ids
}

func keyOf(t *testing.T, event *vxv1.Event) string {
	t.Helper()
	data, ok := must(vx.EventData(event)).(*vxv1.KeyEvent)
	if !ok {
		t.Fatalf("%s has other data", event.GetType())
	}
	return data.GetKeyId()
}

func TestEventsAreListedPageByPage(t *testing.T) {
	c := client(t)
	ids := createKeys(c, 3)
	var listed []string
	for event, err := range c.Events(ctx, &vxv1.ListEventsRequest{Types: keyCreated, PageSize: 2}) {
		if err != nil {
			t.Fatal(err)
		}
		listed = append(listed, keyOf(t, event))
	}
	if len(listed) < 3 || !slices.Equal(listed[len(listed)-3:], ids) {
		t.Fatalf("listed %v, not %v", listed, ids)
	}
}

func TestAWatchContinuesAfterEachBrokenConnection(t *testing.T) {
	ids := createKeys(client(t), 4)
	_, option, attempts := fault(t, "times=3;cut=500")
	var seen []string
	for event, err := range faulty(t).WatchEvents(ctx, &vxv1.WatchEventsRequest{Types: keyCreated}, option) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = append(seen, keyOf(t, event)); slices.Contains(seen, ids[3]) {
			break
		}
	}
	if !slices.Equal(seen[len(seen)-4:], ids) || len(slices.Compact(slices.Sorted(slices.Values(seen)))) != len(seen) {
		t.Fatalf("saw %v, not %v once", seen, ids)
	}
	if made := attempts(); len(made) < 3 {
		t.Fatalf("%d connections", len(made))
	}
}

func TestAWatchFromNowGetsOnlyLaterEvents(t *testing.T) {
	c := client(t)
	createKeys(c, 1)
	_, option, attempts := fault(t, "times=2;status=503")
	first := make(chan *vxv1.Event)
	go func() {
		for event := range faulty(t).WatchEvents(ctx, &vxv1.WatchEventsRequest{Types: keyCreated, After: "now"}, option) {
			first <- event
			break
		}
	}()
	// The third attempt finds where "now" is, and the fourth one is the watch.
	for len(attempts()) < 4 {
	}
	id := createKeys(c, 1)[0]
	if seen := keyOf(t, <-first); seen != id {
		t.Fatalf("saw %s, not %s", seen, id)
	}
}

func TestAWatchEndsWithAnErrorThatDoesNotHeal(t *testing.T) {
	for _, err := range client(t, vx.WithKey(os.Getenv("VX_NO_KEY"))).WatchEvents(ctx, &vxv1.WatchEventsRequest{}) {
		if !errors.Is(err, vx.InvalidApiKey) {
			t.Fatal(err)
		}
	}
	_, option, attempts := fault(t, "times=9;status=503")
	for _, err := range faulty(t).WatchEvents(ctx, &vxv1.WatchEventsRequest{}, option, vx.WithCallRetries(1)) {
		failure(t, err)
	}
	if made := attempts(); len(made) != 2 {
		t.Fatalf("%d connections", len(made))
	}
}

func TestAWebhookIsCreatedTestedVerifiedAndDeleted(t *testing.T) {
	c := client(t)
	type request struct {
		body   []byte
		header http.Header
	}
	requests := make(chan request, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- request{must(io.ReadAll(r.Body)), r.Header}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	created := must(c.CreateWebhook(ctx, &vxv1.CreateWebhookRequest{Url: server.URL + "/"}))
	id, secret := created.GetWebhook().GetId(), created.GetSecret()
	if outcome := must(c.TestWebhook(ctx, id)); outcome.GetStatus() != http.StatusNoContent {
		t.Fatal(outcome)
	}
	received := <-requests
	event := must(vx.VerifyWebhook(received.body, received.header, secret))
	if data, ok := must(vx.EventData(event)).(*vxv1.WebhookTestEvent); !ok || data.GetWebhookId() != id {
		t.Fatal(event)
	}
	if _, err := vx.VerifyWebhook(append(received.body, ' '), received.header, secret); !errors.Is(err, vx.ErrWebhookSignature) {
		t.Fatal(err)
	}
	received.header.Set("Webhook-Timestamp", "1")
	if _, err := vx.VerifyWebhook(received.body, received.header, secret); !errors.Is(err, vx.ErrWebhookSignature) {
		t.Fatal(err)
	}
	paused := "paused"
	if state := must(c.UpdateWebhook(ctx, &vxv1.UpdateWebhookRequest{WebhookId: id, State: paused})).GetState(); state != paused {
		t.Fatal(state)
	}
	if must(c.RotateWebhook(ctx, &vxv1.RotateWebhookRequest{WebhookId: id})).GetSecret() == secret {
		t.Fatal("the same secret")
	}
	for _, err := range c.Deliveries(ctx, &vxv1.ListDeliveriesRequest{WebhookId: id}) {
		must(0, err)
	}
	must(c.Redeliver(ctx, &vxv1.RedeliverRequest{WebhookId: id}))
	must(0, c.DeleteWebhook(ctx, id))
	if _, err := c.Webhook(ctx, id); !errors.Is(err, vx.NotFound) {
		t.Fatal(err)
	}
	for _, each := range must(c.Webhooks(ctx)) {
		if each.GetId() == id {
			t.Fatal("the deleted webhook is listed")
		}
	}
}
