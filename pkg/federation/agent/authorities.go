package agent

import (
	"bytes"
	"context"
	"crypto/x509"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

// authorities follows the fleet when the authority of its certificate is rotated: while the fleet still shows a
// certificate of the old one, it tells of both.
func (a *agent) authorities(ctx context.Context) error {
	if !a.way.pins() {
		return nil
	}
	var state logOnce
	for {
		if err := a.learn(ctx); err != nil && ctx.Err() == nil {
			state.say(a.log, "Keeps the fleet's authority that it knows", "reason", err.Error())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(a.AuthorityInterval):
		}
	}
}

// learn the authority that the fleet tells of. It is stored before it is used, and used only when it is proven to lead
// to the fleet: where a proxy in between has a certificate of its own, the fleet's authority says nothing about that.
func (a *agent) learn(ctx context.Context) error {
	ctx, cancel := within(ctx)
	defer cancel()
	authority, err := a.read(ctx, clusterv1alpha1.CredentialsNamespace, registration.AuthorityConfigMap,
		corev1.ServiceAccountRootCAKey)
	if err != nil || bytes.Equal(authority, a.way.trusted.Load().authority) {
		return err
	}
	other, err := a.way.trusting(authority)
	if err != nil {
		return fmt.Errorf("the authority that the fleet tells of: %w", err)
	}
	if _, err := a.way.knock(ctx, other); err != nil {
		return fmt.Errorf("the fleet's certificate at %s is not from the authority that the fleet tells of: %w",
			a.way.config.Host, err)
	}
	if err := a.store.write(ctx, map[string][]byte{authorityKey: authority}); err != nil {
		return err
	}
	a.way.trust(other)
	a.log.Info("Follows the fleet to another authority of its certificate")
	return nil
}

// read what a ConfigMap of the fleet tells.
func (a *agent) read(ctx context.Context, namespace, name, key string) ([]byte, error) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := a.fleet.Get(ctx, client.ObjectKeyFromObject(configMap), configMap); err != nil {
		return nil, fmt.Errorf("ConfigMap %s/%s in the fleet (`trellisctl register %s` gives agents the rights that "+
			"they need): %w", namespace, name, a.invited.member, err)
	}
	if configMap.Data[key] == "" {
		return nil, fmt.Errorf("ConfigMap %s/%s in the fleet has no %s", namespace, name, key)
	}
	return []byte(configMap.Data[key]), nil
}

// isOutdated tells whether the fleet accepts certificates of an authority that is newer than the agent's: soon it will
// accept no others.
func (a *agent) isOutdated(ctx context.Context, leaf *x509.Certificate) bool {
	ctx, cancel := within(ctx)
	defer cancel()
	accepted, err := a.read(ctx, metav1.NamespaceSystem, registration.ClientAuthorityConfigMap,
		registration.ClientAuthorityConfigMapKey)
	if err != nil {
		a.log.V(1).Info("Cannot find out whether the certificate is of the fleet's newest authority", "reason",
			err.Error())
		return false
	}
	return hasNewer(accepted, leaf)
}

// hasNewer tells whether authorities have the one that has signed a certificate, and one that is newer.
func hasNewer(authorities []byte, leaf *x509.Certificate) bool {
	accepted, err := certutil.ParseCertsPEM(authorities)
	if err != nil {
		return false
	}
	var signer *x509.Certificate
	for _, authority := range accepted {
		if leaf.CheckSignatureFrom(authority) == nil && (signer == nil || authority.NotBefore.After(signer.NotBefore)) {
			signer = authority
		}
	}
	for _, authority := range accepted {
		if signer != nil && authority.NotBefore.After(signer.NotBefore) {
			return true
		}
	}
	return false
}
