package trellisctl

import (
	"math"
	"net/http"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/answers"
)

// answerLimits have room for lists of all objects of a kind in large clusters.
var answerLimits = answers.Limits{Answer: 256 << 20, Event: 16 << 20}

// bounded bounds what is read with a configuration, and returns it: gardens, seeds, fleets and members are others'.
func bounded(config *rest.Config) *rest.Config { return boundedBy(config, answerLimits) }

func boundedBy(config *rest.Config, limits answers.Limits) *rest.Config {
	guard := answers.NewGuard("the API", limits)
	// Logs have no end while they are followed, and nobody keeps them in memory. They too come from nowhere else.
	logs := answers.NewGuard("the API", answers.Limits{Answer: math.MaxInt64, Event: limits.Event})
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &boundedTransport{RoundTripper: next, guarded: guard.Wrap(next), logs: logs.Wrap(next)}
	})
	return config
}

type boundedTransport struct {
	http.RoundTripper
	guarded, logs http.RoundTripper
}

// WrappedRoundTripper is how others find what idle connections to close.
func (t *boundedTransport) WrappedRoundTripper() http.RoundTripper { return t.RoundTripper }

var _ utilnet.RoundTripperWrapper = &boundedTransport{}

// RoundTrip implements http.RoundTripper.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method == http.MethodGet && strings.HasSuffix(request.URL.Path, "/log") {
		return t.logs.RoundTrip(request)
	}
	return t.guarded.RoundTrip(request)
}
