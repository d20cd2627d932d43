// Package secrets makes the certificates, keys and kubeconfigs of a control plane and keeps them as immutable Secrets
// in its namespace. A secret is generated once; its name ends in a checksum of its configuration and of the CA that
// signed it, so a changed configuration or a new CA gives a new secret, pods that mount it by name are rolled, and
// what is no longer used is removed by Cleanup. The Secrets are the only state.
package secrets

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Labels of managed secrets.
const (
	LabelManagedBy = "managed-by"
	// LabelManagedByValue is the value of LabelManagedBy.
	LabelManagedByValue = "secrets-manager"
	// LabelManagerIdentity tells apart managers that share a namespace.
	LabelManagerIdentity = "manager-identity"
	// LabelName is the name of the configuration.
	LabelName = "name"
	// LabelChecksum is the checksum of the configuration and its CA.
	LabelChecksum = "checksum-of-config"
	// LabelIssuedAt and LabelValidUntil are Unix seconds.
	LabelIssuedAt   = "issued-at-time"
	LabelValidUntil = "valid-until-time"
	// LabelRotationInitiation is the Unix time of the rotation that made this secret; absent before the first one.
	LabelRotationInitiation = "last-rotation-initiation-time"
	// LabelBundleFor marks the bundle of a CA or key configuration.
	LabelBundleFor = "bundle-for"
)

// defaultIdentity is that of managers which say none.
const defaultIdentity = "gardenlet"

// renewAfter is the part of a certificate's validity after which it is replaced, in percent. CAs are replaced only by
// a rotation, since that takes the cooperation of their users.
const renewAfter = 80

// Manager makes and finds the secrets of one namespace. It is safe for concurrent use.
type Manager interface {
	// Generate returns the secret for a configuration, after making it when it is missing or about to expire. A
	// certificate's CA must have been generated before.
	Generate(ctx context.Context, config Config, options ...Option) (*corev1.Secret, error)
	// Get returns the secret of a configuration by its name: the one that Generate returned last, otherwise
	// the newest one in the namespace.
	Get(name string, options ...GetOption) (*corev1.Secret, bool)
	// Cleanup deletes the secrets of this manager's identity but those that, since New, the last Generate of each
	// configuration returned or kept. Call it at the end of a flow that has generated everything in use.
	Cleanup(ctx context.Context) error
}

// Options of a manager.
type Options struct {
	// Identity tells apart managers that share a namespace; default "gardenlet".
	Identity string
	// RotationInitiation holds, per configuration name, when its last rotation was asked for.
	RotationInitiation map[string]time.Time
	// Authorities of other namespaces sign certificates of this one, by the names of their configurations. They are not
	// kept here.
	Authorities map[string]*corev1.Secret
	// Clock is for tests; default the real one.
	Clock clock.PassiveClock
	// RSAKey makes RSA keys. It is for tests, as that takes long; default new ones.
	RSAKey func(bits int) (*rsa.PrivateKey, error)
}

// Option changes a Generate call.
type Option func(*generateOptions)

type generateOptions struct{ keepOld bool }

// KeepOld keeps the secret of before a rotation, and holds both in the bundle of a CA or key. Without it the bundle
// holds the current one only.
func KeepOld() Option { return func(o *generateOptions) { o.keepOld = true } }

// GetOption chooses which secret of a configuration Get returns.
type GetOption func(*getOptions)

type getOptions struct{ slot slot }

type slot int

const (
	current slot = iota
	old
	bundle
)

// Old returns the secret of before a rotation, kept by KeepOld.
func Old(o *getOptions) { o.slot = old }

// Bundle returns, for a CA, the Secret whose bundle.crt holds all certificates that are to be trusted.
func Bundle(o *getOptions) { o.slot = bundle }

// New returns a manager after reading the secrets that are in the namespace. The client should read from the API
// server or a synchronised cache that holds this namespace's Secrets.
func New(ctx context.Context, c client.Client, namespace string, options Options) (Manager, error) {
	m := &manager{
		client:    c,
		namespace: namespace,
		identity:  orDefault(options.Identity, defaultIdentity),
		rotations: options.RotationInitiation,
		foreign:   options.Authorities,
		clock:     options.Clock,
		rsaKey:    options.RSAKey,
		existing:  map[string][]*corev1.Secret{},
		entries:   map[string]*entry{},
	}
	if m.clock == nil {
		m.clock = clock.RealClock{}
	}
	if m.rsaKey == nil {
		m.rsaKey = newRSAKey
	}
	return m, m.load(ctx)
}

type manager struct {
	client    client.Client
	namespace string
	identity  string
	rotations map[string]time.Time
	foreign   map[string]*corev1.Secret
	clock     clock.PassiveClock
	rsaKey    func(bits int) (*rsa.PrivateKey, error)

	mutex sync.Mutex
	// existing are the secrets by configuration name, newest first.
	existing map[string][]*corev1.Secret
	entries  map[string]*entry
}

// entry is what Generate returned for one configuration name; its lock lets different names be generated in parallel.
type entry struct {
	generating sync.Mutex
	slots      map[slot]*corev1.Secret
}

func (m *manager) load(ctx context.Context) error {
	list := &corev1.SecretList{}
	err := m.client.List(ctx, list, client.InNamespace(m.namespace), client.MatchingLabels{
		LabelManagedBy: LabelManagedByValue, LabelManagerIdentity: m.identity,
	})
	if err != nil {
		return fmt.Errorf("listing the managed secrets of namespace %s: %w", m.namespace, err)
	}
	for i := range list.Items {
		secret := &list.Items[i]
		if secret.DeletionTimestamp == nil {
			m.remember(secret)
		}
	}
	return nil
}

// remember adds a secret to the existing ones; the caller holds the mutex or is alone.
func (m *manager) remember(secret *corev1.Secret) {
	name := secret.Labels[LabelName]
	list := slices.DeleteFunc(m.existing[name], func(s *corev1.Secret) bool { return s.Name == secret.Name })
	list = append(list, secret)
	slices.SortStableFunc(list, func(a, b *corev1.Secret) int {
		if difference := unixLabel(b, LabelIssuedAt) - unixLabel(a, LabelIssuedAt); difference != 0 {
			return int(max(-1, min(1, difference)))
		}
		return bytes.Compare([]byte(a.Name), []byte(b.Name))
	})
	m.existing[name] = list
}

func unixLabel(secret *corev1.Secret, label string) int64 {
	value, _ := strconv.ParseInt(secret.Labels[label], 10, 64)
	return value
}

func (m *manager) entry(name string) *entry {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	e := m.entries[name]
	if e == nil {
		e = &entry{slots: map[slot]*corev1.Secret{}}
		m.entries[name] = e
	}
	return e
}

// Generate implements Manager.
func (m *manager) Generate(ctx context.Context, config Config, options ...Option) (*corev1.Secret, error) {
	var opts generateOptions
	for _, option := range options {
		option(&opts)
	}
	e := m.entry(config.SecretName())
	e.generating.Lock()
	defer e.generating.Unlock()

	secret, err := m.generate(ctx, e, config, opts)
	if err != nil {
		return nil, fmt.Errorf("secret %q in namespace %s: %w", config.SecretName(), m.namespace, err)
	}
	return secret.DeepCopy(), nil
}

func (m *manager) generate(ctx context.Context, e *entry, config Config, opts generateOptions) (*corev1.Secret, error) {
	if reflect.ValueOf(config).Kind() == reflect.Pointer {
		// Pointers satisfy Config too, but would miss the defaults that are filled into values.
		return nil, fmt.Errorf("a %T was given: pass configurations by value", config)
	}
	if err := config.check(); err != nil {
		return nil, err
	}
	plan, err := m.plan(config)
	if err != nil {
		return nil, err
	}
	secret := m.find(plan)
	if secret == nil {
		if secret, err = m.create(ctx, plan); err != nil {
			return nil, err
		}
	}
	var previous *corev1.Secret
	if opts.keepOld {
		previous = m.previous(secret)
	}
	m.use(e, current, secret)
	m.use(e, old, previous)
	if data := bundleData(secret, previous); data != nil {
		return secret, m.generateBundle(ctx, e, config.SecretName(), data)
	}
	return secret, nil
}

// plan is everything that decides about a secret before it is made.
type plan struct {
	config   Config
	ca       *authority
	checksum string
	rotation string
}

func (m *manager) plan(config Config) (plan, error) {
	p := plan{config: config}
	var sources []string
	if name := config.signingCA(); name != "" {
		secret, found := m.signer(config)
		if !found {
			return p, fmt.Errorf("its CA %q has not been generated", name)
		}
		ca, err := parseAuthority(secret.Data)
		if err != nil {
			return p, fmt.Errorf("its CA %q in Secret %s: %w", name, secret.Name, err)
		}
		p.ca = ca
		sources = append(sources, secret.Name)
		if secret.Namespace != m.namespace {
			// Its name may be that of one before it, which was lost.
			sources = append(sources, shortHash(secret.Data[DataKeyCertificateCA], 8))
		}
	}
	switch c := config.(type) {
	case CertificateConfig:
		p.config = c.normalized()
	case KubeconfigConfig:
		serverCA := orDefault(c.ServerCA, "ca")
		secret, found := m.Get(serverCA, Bundle)
		if !found {
			return p, fmt.Errorf("the bundle of its server's CA %q has not been generated", serverCA)
		}
		c.bundle = secret.Data[DataKeyCertificateBundle]
		p.config = c
		sources = append(sources, secret.Name)
	}
	if at, found := m.rotations[config.SecretName()]; found && !at.IsZero() {
		p.rotation = strconv.FormatInt(at.Unix(), 10)
	}
	var err error
	p.checksum, err = checksum(p.config, sources...)
	return p, err
}

// signer returns the CA that signs: the current one, or that of before a rotation.
func (m *manager) signer(config Config) (*corev1.Secret, bool) {
	if certificate, ok := config.(CertificateConfig); ok && certificate.signedByOldCA() {
		if secret, found := m.Get(certificate.SigningCA, Old); found {
			return secret, true
		}
	}
	return m.Get(config.signingCA())
}

// find returns the newest secret that fits the plan and need not be renewed.
func (m *manager) find(p plan) *corev1.Secret {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, secret := range m.existing[p.config.SecretName()] {
		if secret.Labels[LabelChecksum] == p.checksum && secret.Labels[LabelRotationInitiation] == p.rotation &&
			(isCA(secret) || !dueForRenewal(secret, m.clock.Now())) {
			return secret
		}
	}
	return nil
}

// previous returns the newest secret of the same configuration that is older than the given one and stems from
// another rotation.
func (m *manager) previous(secret *corev1.Secret) *corev1.Secret {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, candidate := range m.existing[secret.Labels[LabelName]] {
		if candidate.Name != secret.Name &&
			candidate.Labels[LabelRotationInitiation] != secret.Labels[LabelRotationInitiation] &&
			unixLabel(candidate, LabelIssuedAt) <= unixLabel(secret, LabelIssuedAt) {
			return candidate
		}
	}
	return nil
}

func isCA(secret *corev1.Secret) bool { return len(secret.Data[DataKeyPrivateKeyCA]) > 0 }

func dueForRenewal(secret *corev1.Secret, now time.Time) bool {
	until := unixLabel(secret, LabelValidUntil)
	if until == 0 {
		return false
	}
	issued := unixLabel(secret, LabelIssuedAt)
	return now.Unix() >= issued+(until-issued)*renewAfter/100
}

func (m *manager) create(ctx context.Context, p plan) (*corev1.Secret, error) {
	now := m.clock.Now()
	made, err := p.config.generate(means{ca: p.ca, now: now, rsaKey: m.rsaKey})
	if err != nil {
		return nil, err
	}
	labels := m.labels(p.config.SecretName(), p.checksum, now)
	if !made.notAfter.IsZero() {
		labels[LabelValidUntil] = strconv.FormatInt(made.notAfter.Unix(), 10)
	}
	name := p.config.SecretName() + "-" + p.checksum
	if p.rotation != "" {
		labels[LabelRotationInitiation] = p.rotation
		name += "-" + shortHash([]byte(p.rotation), 5)
	}
	if m.exists(p.config.SecretName(), name) {
		name += "-" + shortHash([]byte(strconv.FormatInt(now.Unix(), 10)), 5)
	}
	return m.store(ctx, name, labels, made.data)
}

// exists reports whether a Secret with this name is there: then it is due for renewal.
func (m *manager) exists(config, name string) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.ContainsFunc(m.existing[config], func(s *corev1.Secret) bool { return s.Name == name })
}

func (m *manager) labels(name, checksum string, issued time.Time) map[string]string {
	return map[string]string{
		LabelManagedBy:       LabelManagedByValue,
		LabelManagerIdentity: m.identity,
		LabelName:            name,
		LabelChecksum:        checksum,
		LabelIssuedAt:        strconv.FormatInt(issued.Unix(), 10),
	}
}

// store creates the Secret. When another process was faster, or a cache lagged behind, what is there wins.
func (m *manager) store(ctx context.Context, name string, labels map[string]string,
	data map[string][]byte) (*corev1.Secret, error) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name, Labels: labels},
		Type:       corev1.SecretTypeOpaque,
		Immutable:  new(true),
		Data:       maps.Clone(data),
	}
	err := m.client.Create(ctx, secret)
	if apierrors.IsAlreadyExists(err) {
		secret = &corev1.Secret{}
		err = m.client.Get(ctx, client.ObjectKey{Namespace: m.namespace, Name: name}, secret)
	}
	if err != nil {
		return nil, fmt.Errorf("storing Secret %s: %w", name, err)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.remember(secret)
	return secret, nil
}

func (m *manager) use(e *entry, s slot, secret *corev1.Secret) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	e.slots[s] = secret
}

// used are the names of the Secrets that Cleanup must keep; the caller holds the mutex.
func (m *manager) used() map[string]bool {
	names := map[string]bool{}
	for _, e := range m.entries {
		for _, secret := range e.slots {
			if secret != nil {
				names[secret.Name] = true
			}
		}
	}
	return names
}

// bundleData returns what a bundle of these secrets holds: CA certificates, or public keys of a key pair; nil when the
// secret is neither.
func bundleData(secrets ...*corev1.Secret) map[string][]byte {
	data := map[string][]byte{}
	for _, secret := range secrets {
		if secret == nil {
			continue
		}
		if isCA(secret) {
			data[DataKeyCertificateBundle] = append(data[DataKeyCertificateBundle],
				secret.Data[DataKeyCertificateCA]...)
		} else if len(secret.Data[DataKeyRSAPublicKey]) > 0 {
			data[DataKeyPublicKeyBundle] = append(data[DataKeyPublicKeyBundle], secret.Data[DataKeyRSAPublicKey]...)
		}
	}
	if len(data) == 0 {
		return nil
	}
	return data
}

// DataKeyPublicKeyBundle holds the public keys, in PEM, that tokens may be signed with, in a bundle secret.
const DataKeyPublicKeyBundle = "bundle.pub"

func (m *manager) generateBundle(ctx context.Context, e *entry, name string, data map[string][]byte) error {
	hash := sha256.New()
	for _, key := range slices.Sorted(maps.Keys(data)) {
		hash.Write(data[key])
	}
	sum := hex.EncodeToString(hash.Sum(nil))[:8]
	bundleName := name + "-bundle"

	m.mutex.Lock()
	var secret *corev1.Secret
	for _, candidate := range m.existing[bundleName] {
		if candidate.Labels[LabelChecksum] == sum {
			secret = candidate
		}
	}
	m.mutex.Unlock()

	if secret == nil {
		labels := m.labels(bundleName, sum, m.clock.Now())
		labels[LabelBundleFor] = name
		var err error
		if secret, err = m.store(ctx, bundleName+"-"+sum, labels, data); err != nil {
			return err
		}
	}
	m.use(e, bundle, secret)
	return nil
}

// Get implements Manager.
func (m *manager) Get(name string, options ...GetOption) (*corev1.Secret, bool) {
	var opts getOptions
	for _, option := range options {
		option(&opts)
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if e := m.entries[name]; e != nil && e.slots[current] != nil {
		secret := e.slots[opts.slot]
		return secret.DeepCopy(), secret != nil
	}
	var list []*corev1.Secret
	switch opts.slot {
	case current:
		if secret := m.foreign[name]; secret != nil {
			return secret.DeepCopy(), true
		}
		list = m.existing[name]
	case bundle:
		list = m.existing[name+"-bundle"]
	}
	if len(list) == 0 {
		return nil, false
	}
	return list[0].DeepCopy(), true
}

// Cleanup implements Manager.
func (m *manager) Cleanup(ctx context.Context) error {
	m.mutex.Lock()
	used := m.used()
	var unused []*corev1.Secret
	for name, list := range m.existing {
		m.existing[name] = slices.DeleteFunc(list, func(secret *corev1.Secret) bool {
			if used[secret.Name] {
				return false
			}
			unused = append(unused, secret)
			return true
		})
	}
	m.mutex.Unlock()
	for _, secret := range unused {
		if err := m.client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting unused Secret %s/%s: %w", secret.Namespace, secret.Name, err)
		}
	}
	return nil
}

func shortHash(data []byte, length int) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])[:length]
}
