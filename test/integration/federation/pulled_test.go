package federation

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/agent"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// pulled is a member that is served by an agent.
type pulled struct {
	world      *world
	name       string
	invitation *registration.Invitation
	// fleet is how the agent reaches it.
	fleet   *rest.Config
	options agent.Options
	member  client.Client
}

// invite registers a cluster and applies the agent's manifest there; no agent runs yet. The agent will have the rights
// that the manifest gives it, and knows the fleet by its certificate.
func (w *world) invite(t *testing.T, name string, allowance registration.Allowance) *pulled {
	t.Helper()
	w.servers.startControllers(t, w.fleetConfig, "certificatesigningrequest-signing-controller",
		"garbage-collector-controller")
	w.startApprover(t)
	config, member := w.startCluster(t, name)
	p := &pulled{world: w, name: name, member: member, fleet: w.pinnedFleet(t)}
	p.apply(t, allowance)
	p.configure(t, config, allowance)
	return p
}

// apply another manifest of the agent in the member.
func (p *pulled) apply(t *testing.T, allowance registration.Allowance) {
	t.Helper()
	var err error
	description := registration.Description{
		Name: p.name, Provider: "metal", Labels: map[string]string{"pulled": "true"},
	}
	if p.invitation, err = registration.Register(ctx, p.world.fleet, p.fleet,
		registration.RegisterOptions{Description: description, TokenLifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := registration.ApplyManifest(ctx, p.member,
		p.invitation.Manifest(registration.AgentOptions{
			Image: "federation:test", Allowance: allowance, ServeAPI: !allowance.Bounded(),
		})); err != nil {
		t.Fatal(err)
	}
}

// pinnedFleet leads to the fleet, which is known by its certificate.
func (w *world) pinnedFleet(t *testing.T) *rest.Config {
	t.Helper()
	authority, err := os.ReadFile(w.servers.file("fleet/apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := rest.CopyConfig(w.fleetConfig)
	pinned.TLSClientConfig = rest.TLSClientConfig{CAData: authority}
	return pinned
}

// configure gives the agent the rights of its service account in the member, and the pace of tests.
func (p *pulled) configure(t *testing.T, config *rest.Config, allowance registration.Allowance) {
	t.Helper()
	token, err := registration.RequestToken(ctx, p.member,
		types.NamespacedName{Namespace: p.invitation.Access, Name: "agent"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p.options = agent.DefaultOptions()
	p.options.Member = &rest.Config{
		Host: config.Host, BearerToken: token.Token, TLSClientConfig: config.TLSClientConfig,
	}
	p.options.Namespace, p.options.Allowance = p.invitation.Access, allowance
	p.options.MetricsAddress, p.options.HealthAddress = "0", "0"
	p.options.LeaseDuration, p.options.AuthorityInterval, p.options.Retry = time.Second, 200*time.Millisecond,
		100*time.Millisecond
	p.options.Clusters.ProbeInterval, p.options.Clusters.SurveyInterval = 200*time.Millisecond, time.Second
}

// start runs the agent until the test ends or it is killed. The channel tells how it ended.
func (p *pulled) start(t *testing.T) (kill func(), ended <-chan error) {
	t.Helper()
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	stopped := make(chan struct{})
	go func() {
		done <- agent.Run(running, p.options)
		close(stopped)
	}()
	kill = func() {
		cancel()
		<-stopped
	}
	t.Cleanup(kill)
	return kill, done
}

func (p *pulled) waiting(t *testing.T) []registration.Candidate {
	t.Helper()
	var candidates []registration.Candidate
	eventually(t, "the agent asks", func() (err error) {
		if candidates, err = registration.Candidates(ctx, p.world.fleet, p.name); err == nil && len(candidates) == 0 {
			err = errors.New("nobody waits")
		}
		return err
	})
	return candidates
}

func (p *pulled) accept(t *testing.T) {
	t.Helper()
	chosen, err := registration.Choose(p.waiting(t), nil, p.name, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Accept(ctx, p.world.fleet, chosen); err != nil {
		t.Fatal(err)
	}
	// Who did not hear of it does it again.
	accepted, err := registration.Accepted(ctx, p.world.fleet, p.name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := registration.Choose(nil, accepted, p.name, chosen.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Accept(ctx, p.world.fleet, again); err != nil {
		t.Error(err)
	}
}

// asAgent is a client with the certificate that the agent has.
func (p *pulled) asAgent(t *testing.T) client.Client {
	t.Helper()
	secret := &corev1.Secret{}
	if err := p.member.Get(ctx, types.NamespacedName{Namespace: p.invitation.Access, Name: "credentials"},
		secret); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: p.world.fleetConfig.Host,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: true, CertData: secret.Data["tls.crt"], KeyData: secret.Data["tls.key"],
		},
	}
	c, err := client.New(config, client.Options{Scheme: p.world.fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
