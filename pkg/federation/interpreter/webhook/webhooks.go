package webhook

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/config/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/interpreter"
	"github.com/trellis-garden/trellis/pkg/federation/outside"
)

// Limits of webhooks.
const (
	defaultTimeout = 10 * time.Second
	maxTimeout     = 30 * time.Second
	// maxAnswer is the size of an answer.
	maxAnswer = 3 << 20
	// maxQuestions is how many questions a webhook gets at once.
	maxQuestions = 4
	// patience is how long a question waits for a slot.
	patience = time.Second
	// maxFailures in a row give a webhook a pause.
	maxFailures = 5
	pause       = 10 * time.Second
)

// Webhooks are those of a fleet, in the order in which they are asked.
type Webhooks struct {
	list []*webhook
}

var _ interpreter.Source = (*Webhooks)(nil)

// RulesFor implements interpreter.Source. Prune has to be named: "*" stands for what every webhook knows.
func (w *Webhooks) RulesFor(kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) interpreter.Rules {
	for _, hook := range w.list {
		if slices.ContainsFunc(hook.rules,
			func(rule configv1alpha1.RuleWithOperations) bool { return matches(rule, kind, operation) }) {
			return hook
		}
	}
	return nil
}

// Kinds tells for which kinds a configuration has rules; "*" stands for all.
func Kinds(configuration *configv1alpha1.ResourceInterpreterWebhookConfiguration) func(schema.GroupVersionKind) bool {
	return func(kind schema.GroupVersionKind) bool {
		for _, hook := range configuration.Webhooks {
			if slices.ContainsFunc(hook.Rules,
				func(rule configv1alpha1.RuleWithOperations) bool { return matchesKind(rule.Rule, kind) }) {
				return true
			}
		}
		return false
	}
}

func matches(rule configv1alpha1.RuleWithOperations, kind schema.GroupVersionKind,
	operation configv1alpha1.InterpreterOperation) bool {
	asked := slices.Contains(rule.Operations, operation) ||
		operation != configv1alpha1.InterpreterOperationPrune &&
			slices.Contains(rule.Operations, configv1alpha1.InterpreterOperationAll)
	return asked && matchesKind(rule.Rule, kind)
}

func matchesKind(rule configv1alpha1.Rule, kind schema.GroupVersionKind) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return has(rule.APIGroups, kind.Group) && has(rule.APIVersions, kind.Version) && has(rule.Kinds, kind.Kind)
}

// Builder makes webhooks of configurations, and keeps those that did not change: their connections, and what is known
// of their failures.
type Builder struct {
	// Services finds the Services that webhooks are behind; nil refuses them.
	Services client.Reader
	// Dial connects to webhooks; nil is outside.Direct.
	Dial  outside.Dial
	built map[string]*webhook
}

// Build gives the webhooks of all configurations, and errors by the name of the configuration. A webhook with an error
// answers with it.
func (b *Builder) Build(configurations []configv1alpha1.ResourceInterpreterWebhookConfiguration) (*Webhooks,
	map[string]error) {
	sorted := slices.Clone(configurations)
	slices.SortFunc(sorted, func(a, b configv1alpha1.ResourceInterpreterWebhookConfiguration) int {
		return strings.Compare(a.Name, b.Name)
	})
	result := &Webhooks{}
	failures := map[string]error{}
	built := map[string]*webhook{}
	for i := range sorted {
		for n := range sorted[i].Webhooks {
			hook := b.one(sorted[i].Name, &sorted[i].Webhooks[n])
			built[hook.key] = hook
			result.list = append(result.list, hook)
			if hook.broken != nil {
				failures[sorted[i].Name] = errors.Join(failures[sorted[i].Name],
					fmt.Errorf("webhooks[%d]: %w", n, hook.broken))
			}
		}
	}
	b.built = built
	return result, failures
}

func (b *Builder) one(configuration string, spec *configv1alpha1.ResourceInterpreterWebhook) *webhook {
	// the whole specification is the key: names need not differ
	encoded, err := utiljson.Marshal(spec)
	key := configuration + "/" + string(encoded)
	if hook, found := b.built[key]; found && err == nil {
		return hook
	}
	hook := &webhook{
		key: key, name: spec.Name, rules: spec.Rules, timeout: defaultTimeout, services: b.Services,
		service: spec.ClientConfig.Service,
		slots:   make(chan struct{}, maxQuestions), now: time.Now,
	}
	if spec.TimeoutSeconds != nil {
		hook.timeout = min(max(time.Duration(*spec.TimeoutSeconds)*time.Second, time.Second), maxTimeout)
	}
	hook.broken = hook.configure(spec, b.Dial)
	return hook
}

func (h *webhook) configure(spec *configv1alpha1.ResourceInterpreterWebhook, dial outside.Dial) error {
	if !slices.Contains(spec.InterpreterContextVersions, configv1alpha1.GroupVersion.Version) {
		return fmt.Errorf("interpreterContextVersions: must contain %s", configv1alpha1.GroupVersion.Version)
	}
	settings := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case spec.ClientConfig.Service != nil:
		if b := h.services; b == nil {
			return errors.New("clientConfig.service: there is no fleet to look it up in; give a url")
		}
		settings.ServerName = spec.ClientConfig.Service.Name + "." + spec.ClientConfig.Service.Namespace + ".svc"
	case spec.ClientConfig.URL == nil:
		return errors.New("clientConfig: give a url or a service")
	default:
		address, err := url.Parse(*spec.ClientConfig.URL)
		if err != nil {
			return fmt.Errorf("clientConfig.url: %w", err)
		}
		if address.Scheme != "https" || address.Host == "" || address.User != nil || address.RawQuery != "" ||
			address.Fragment != "" {
			return errors.New("clientConfig.url: must be https://host[:port]/path, without user, query and fragment")
		}
		h.url = address
	}
	if len(spec.ClientConfig.CABundle) > 0 {
		settings.RootCAs = x509.NewCertPool()
		if !settings.RootCAs.AppendCertsFromPEM(spec.ClientConfig.CABundle) {
			return errors.New("clientConfig.caBundle: has no certificate in PEM")
		}
	}
	if dial == nil {
		dial = outside.Direct
	}
	h.client = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: settings, DialContext: dial, TLSHandshakeTimeout: 5 * time.Second,
			MaxConnsPerHost: maxQuestions, IdleConnTimeout: 30 * time.Second, ForceAttemptHTTP2: true,
			MaxResponseHeaderBytes: 64 << 10,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// address is where the webhook listens.
func (h *webhook) address(ctx context.Context) (*url.URL, error) {
	if h.service == nil {
		return h.url, nil
	}
	return serviceURL(ctx, h.services, h.service)
}
