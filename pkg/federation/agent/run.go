package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/pkg/managers"
)

// Options of an agent.
type Options struct {
	// Member leads to the member's API.
	Member *rest.Config
	// Namespace in the member that holds the agent's Secrets.
	Namespace string
	// Allowance is what the fleet may manage in the member.
	Allowance registration.Allowance
	// Workers is the number of objects that are handled at once.
	Workers int
	// MetricsAddress and HealthAddress are listened on; "0" turns one off.
	MetricsAddress, HealthAddress string
	// Clusters says how often the member is looked at.
	Clusters controllers.ClusterOptions
	// LeaseDuration is how long the agent may be silent before the fleet counts the member as unreachable: seconds, a
	// minute at most.
	LeaseDuration time.Duration
	// CertificateLifetime is what certificates are asked to have; they are renewed at half of it.
	CertificateLifetime time.Duration
	// RenewAt says when a certificate is renewed; nil means when half of its life is over.
	RenewAt func(*x509.Certificate) time.Time
	// AuthorityInterval is between two looks at the fleet's authorities.
	AuthorityInterval time.Duration
	// Retry is between two tries to be accepted, to renew, and to find out whether the member has left.
	Retry time.Duration
}

// DefaultOptions are what production uses.
func DefaultOptions() Options {
	return Options{
		Workers: 16, MetricsAddress: ":8080", HealthAddress: ":8081", Clusters: controllers.DefaultClusterOptions(),
		LeaseDuration: 20 * time.Second, CertificateLifetime: registration.DefaultCertificateLifetime,
		AuthorityInterval: time.Minute, Retry: 5 * time.Second,
	}
}

// Validate tells what an agent cannot do.
func (o Options) Validate() error {
	switch {
	case o.Namespace == "":
		return errors.New("--namespace: name the namespace of the member that holds the invitation")
	case o.Workers < 1:
		return fmt.Errorf("--workers %d: 1 at least", o.Workers)
	case o.LeaseDuration < time.Second || o.LeaseDuration > time.Minute:
		return fmt.Errorf("--lease-duration %s: from 1s to 1m", o.LeaseDuration)
	case o.CertificateLifetime < 10*time.Minute || o.CertificateLifetime > registration.MaxCertificateLifetime:
		return fmt.Errorf("--certificate-lifetime %s: from 10m to %s", o.CertificateLifetime,
			registration.MaxCertificateLifetime)
	}
	return o.Allowance.Validate()
}

// agent of one member.
type agent struct {
	Options
	store  store
	member client.Client
	scheme *runtime.Scheme
	log    logr.Logger
	state  logOnce

	invited *invitation
	user    string
	request registration.Request
	way     *way
	// fleet is read without a cache.
	fleet client.Client
	// serving tells that the controllers run.
	serving atomic.Bool
}

// Run serves a member until ctx ends, or until the member has left the fleet and the agent has removed itself.
func Run(ctx context.Context, options Options) error {
	if err := options.Validate(); err != nil {
		return err
	}
	if options.RenewAt == nil {
		options.RenewAt = halfTime
	}
	scheme := fleetscheme.Scheme()
	member, err := client.New(options.Member, client.Options{Scheme: scheme})
	if err != nil {
		return fmt.Errorf("connecting to the member at %s: %w", options.Member.Host, err)
	}
	a := &agent{
		Options: options, store: store{member, options.Namespace}, member: member, scheme: scheme,
		log: logr.FromContextOrDiscard(ctx).WithName("agent"),
	}
	running, stop := context.WithCancel(ctx)
	defer stop()
	if err := a.tell(running); err != nil {
		return err
	}
	if err := a.prepare(running); err != nil {
		return err
	}
	if a.fleet, err = client.New(a.way.config, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("connecting to the fleet at %s: %w", a.way.config.Host, err)
	}
	left := make(chan error, 1)
	go func() {
		left <- a.watchLeaving(running)
		stop()
	}()
	err = a.serve(running)
	stop()
	if err := <-left; errors.Is(err, errLeft) {
		return nil
	}
	return err
}

// prepare gets a certificate, however long that takes.
func (a *agent) prepare(ctx context.Context) error {
	for {
		certificate, err := a.obtain(ctx)
		if err == nil {
			a.use(certificate)
			return nil
		}
		a.explain(err)
		if err := a.pause(ctx); err != nil {
			return err
		}
	}
}

func (a *agent) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(a.Retry):
		return nil
	}
}

// explain says what somebody has to do.
func (a *agent) explain(err error) {
	switch {
	case errors.Is(err, errUndecided):
	case apierrors.IsUnauthorized(err):
		a.state.say(a.log, "The invitation has expired, or the member was removed: invite the agent again and apply "+
			"the manifest", "command", "trellisctl register")
	default:
		a.state.say(a.log, "Cannot get a certificate yet", "reason", err.Error())
	}
}

// obtain gives the stored certificate, or tries to get the first one.
func (a *agent) obtain(ctx context.Context) (*tls.Certificate, error) {
	ctx, cancel := within(ctx)
	defer cancel()
	invited, err := a.store.invitation(ctx)
	if err != nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: invited.member, UID: types.UID(invited.uid)},
	}
	a.invited, a.user = invited, registration.AgentUser(cluster)
	secret, err := a.store.key(ctx)
	if err != nil {
		return nil, err
	}
	if secret, err = a.takeUp(ctx, invited, secret); err != nil {
		return nil, err
	}
	if learned := secret.Data[authorityKey]; len(learned) > 0 {
		invited.config.CAData = learned
	}
	if a.way, err = newWay(invited.config); err != nil {
		return nil, err
	}
	if err := a.describe(ctx); err != nil {
		return nil, err
	}
	if known := certificate(secret, a.user, time.Now()); known != nil {
		return known, nil
	}
	fleet, err := client.New(invited.config, client.Options{Scheme: a.scheme})
	if err != nil {
		return nil, fmt.Errorf("connecting to the fleet at %s: %w", invited.config.Host, err)
	}
	key := secret.Data[corev1.TLSPrivateKeyKey]
	signed, err := ask(ctx, fleet, a.request, key)
	if err != nil {
		a.tellFingerprint(err, key)
		return nil, err
	}
	return a.keep(ctx, signed, key)
}

// takeUp an invitation: what was learned since another one is forgotten, and the certificate, too, if the fleet does
// not accept it any more.
func (a *agent) takeUp(ctx context.Context, invited *invitation, secret *corev1.Secret) (*corev1.Secret, error) {
	if string(secret.Data[invitationKey]) == invited.hash {
		return secret, nil
	}
	entries := map[string][]byte{authorityKey: nil, invitationKey: []byte(invited.hash)}
	if known := certificate(secret, a.user, time.Now()); known != nil {
		refused, err := isRefused(ctx, invited, known)
		if err != nil {
			return nil, err
		}
		if refused {
			entries[corev1.TLSCertKey] = nil
			// The fleet may still have the answer to the request that was made with the old key.
			if entries[corev1.TLSPrivateKeyKey], err = registration.NewKey(); err != nil {
				return nil, err
			}
		}
	}
	if err := a.store.write(ctx, entries); err != nil {
		return nil, err
	}
	return a.store.read(ctx, credentialsSecret)
}

// isRefused tells whether the fleet does not know who has signed a certificate, as after a rotation that the agent has
// missed.
func isRefused(ctx context.Context, invited *invitation, known *tls.Certificate) (bool, error) {
	w, err := newWay(invited.config)
	if err != nil {
		return false, err
	}
	w.use(known)
	status, err := w.knock(ctx, w.trusted.Load())
	if err != nil {
		return false, fmt.Errorf("connecting to the fleet at %s: %w", invited.config.Host, err)
	}
	return status == http.StatusUnauthorized, nil
}

func (a *agent) tellFingerprint(err error, key []byte) {
	if fingerprint, keyErr := registration.KeyFingerprint(key); keyErr == nil && errors.Is(err, errUndecided) {
		a.state.say(a.log, "Waiting to be accepted in the fleet by somebody who compares the fingerprint of this "+
			"agent's key", "fleet", a.invited.config.Host,
			"member", a.invited.member, "fingerprint", fingerprint, "command", "trellisctl accept "+a.invited.member)
	}
}

// describe finds out what the agent says about its member when it asks.
func (a *agent) describe(ctx context.Context) error {
	id, err := registration.Identity(ctx, a.member)
	if err != nil {
		return fmt.Errorf("the member does not answer as it should: %w", err)
	}
	asking, err := discovery.NewDiscoveryClientForConfig(a.Member)
	if err != nil {
		return err
	}
	version, err := asking.ServerVersion()
	if err != nil {
		return fmt.Errorf("the member's version: %w", err)
	}
	a.request = registration.Request{
		Member: a.invited.member, UID: a.invited.uid, ID: id, Version: version.GitVersion,
		Lifetime: a.CertificateLifetime,
	}
	return nil
}

// keep stores a certificate with its key before it is used.
func (a *agent) keep(ctx context.Context, signed, key []byte) (*tls.Certificate, error) {
	entries := map[string][]byte{corev1.TLSCertKey: signed, corev1.TLSPrivateKeyKey: key}
	pair := certificate(&corev1.Secret{Data: entries}, a.user, time.Now())
	if pair == nil {
		return nil, fmt.Errorf("the fleet's certificate is not one for %s and the agent's key", a.user)
	}
	if err := a.store.write(ctx, entries); err != nil {
		return nil, err
	}
	a.log.Info("The fleet has signed a certificate", "member", a.invited.member, "until",
		pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return pair, nil
}

// serve runs the controllers.
func (a *agent) serve(ctx context.Context) error {
	for {
		mgr, err := a.manager(ctx)
		if err == nil {
			return mgr.Start(ctx)
		}
		if apierrors.IsUnauthorized(err) {
			a.state.say(a.log, "The fleet does not accept the agent's certificate any more: invite the agent again "+
				"and apply the manifest", "command", "trellisctl register")
		} else {
			// What an agent may do follows its acceptance by a moment.
			a.state.say(a.log, "Cannot read from the fleet yet", "reason", err.Error())
		}
		if a.pause(ctx) != nil {
			return nil
		}
	}
}

func (a *agent) manager(ctx context.Context) (manager.Manager, error) {
	works := clusterv1alpha1.ExecutionNamespace(a.invited.member)
	mgr, err := manager.New(a.way.config, managers.Patient(manager.Options{
		Scheme: a.scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Cache: cache.Options{
			DefaultTransform: cache.TransformStripManagedFields(),
			ByObject: map[client.Object]cache.ByObject{
				&workv1alpha1.Work{}:       {Namespaces: map[string]cache.Config{works: {}}},
				&clusterv1alpha1.Cluster{}: {Field: fields.OneTermEqualSelector("metadata.name", a.invited.member)},
			},
		},
	}))
	if err != nil {
		return nil, fmt.Errorf("connecting to the fleet: %w", err)
	}
	err = controllers.AddAgent(ctx, mgr, controllers.AgentOptions{
		Name: a.invited.member, Member: a.Member, Workers: a.Workers, Clusters: a.Clusters, Allows: a.Allowance.Check,
		Identity: func(ctx context.Context) (string, error) { return registration.Identity(ctx, a.member) },
		Leaving:  func(ctx context.Context) error { return a.store.setLeaving(ctx, true) },
	})
	return mgr, errors.Join(err, mgr.Add(manager.RunnableFunc(a.heartbeats)), mgr.Add(manager.RunnableFunc(a.renewals)),
		mgr.Add(manager.RunnableFunc(a.authorities)), mgr.Add(manager.RunnableFunc(a.tunnels)),
		mgr.Add(manager.RunnableFunc(a.isServing)))
}

// isServing is started when the caches are filled.
func (a *agent) isServing(ctx context.Context) error {
	a.serving.Store(true)
	<-ctx.Done()
	a.serving.Store(false)
	return nil
}

// heartbeats renew the Lease.
func (a *agent) heartbeats(ctx context.Context) error {
	ticker := time.NewTicker(a.LeaseDuration / 4)
	defer ticker.Stop()
	for {
		if err := a.beat(ctx); err != nil && ctx.Err() == nil {
			a.log.V(1).Info("Cannot renew the lease in the fleet", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

func (a *agent) beat(ctx context.Context) error {
	ctx, cancel := within(ctx)
	defer cancel()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: clusterv1alpha1.CredentialsNamespace, Name: a.invited.member},
	}
	before := lease.DeepCopy()
	lease.Spec = coordinationv1.LeaseSpec{
		HolderIdentity: new(a.invited.member), LeaseDurationSeconds: new(int32(a.LeaseDuration.Seconds())),
		RenewTime: new(metav1.NowMicro()),
	}
	return a.fleet.Patch(ctx, lease, client.MergeFrom(before))
}

// use a certificate from now on.
func (a *agent) use(certificate *tls.Certificate) {
	a.way.use(certificate)
	expiry.Set(float64(certificate.Leaf.NotAfter.Unix()))
}
