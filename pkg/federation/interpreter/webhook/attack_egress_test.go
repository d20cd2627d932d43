package webhook

import (
	"net/http"
	"net/netip"
	"strings"
	"testing"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/test/seedegress"
)

// Who may configure webhooks of a fleet has it ask what listens in its seed.
func TestAttackWebhookInTheSeed(t *testing.T) {
	asked := false
	inside := serve(t, func(http.ResponseWriter, *configv1alpha1.ResourceInterpreterRequest) { asked = true })
	proxy := seedegress.Start(t, egress.Rules{}, seedegress.World{
		Resolve: func(string) []netip.Addr { return []netip.Addr{netip.MustParseAddr("10.1.0.5")} },
		Servers: map[string]string{"10.1.0.5:443": inside.Listener.Addr().String()},
	})
	for _, url := range []string{inside.URL, "https://10.1.0.5/", "https://hook.example.com/"} {
		one := configuration(inside)
		one.Webhooks[0].ClientConfig.URL = &url
		one.Webhooks[0].TimeoutSeconds = new(int32(10))
		builder := Builder{Dial: proxy.Dialer(t, "shoot--demo--fleet").DialContext}
		hooks, failures := builder.Build([]configv1alpha1.ResourceInterpreterWebhookConfiguration{one})
		if len(failures) > 0 {
			t.Fatal(failures)
		}
		i := interpreter.New()
		i.SetSources(hooks)
		if _, err := i.Health(t.Context(), gate()); err == nil ||
			!strings.Contains(err.Error(), "an operator of the seed can allow it") {
			t.Errorf("%s: got %v", url, err)
		}
	}
	if asked || len(proxy.Dialled()) > 0 {
		t.Errorf("asked: %v, dialled %v", asked, proxy.Dialled())
	}
}
