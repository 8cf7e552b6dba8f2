package vx

import (
	"net/http"
	"sync/atomic"

	"connectrpc.com/connect"
)

// noRedirects sends keys and prompts to no server but the one that was named.
var noRedirects = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// recorder keeps the headers of refusals: Connect drops those of proxies, such as Retry-After.
type recorder struct{ connect.HTTPClient }

type refusalKey struct{}

// refusal has the response of an attempt whose status is not 200.
type refusal struct{ response atomic.Pointer[http.Response] }

func (r recorder) Do(request *http.Request) (*http.Response, error) {
	response, err := r.HTTPClient.Do(request)
	refused, ok := request.Context().Value(refusalKey{}).(*refusal)
	if ok && err == nil && response.StatusCode != http.StatusOK {
		refused.response.Store(response)
	}
	return response, err
}

// complete adds the headers to an error that has none.
func (r *refusal) complete(err *Error) {
	if response := r.response.Load(); response != nil && len(err.Header) == 0 {
		err.Header = response.Header
		err.RequestID = response.Header.Get("X-Request-Id")
	}
}
