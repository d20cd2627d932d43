package agent

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/federation/registration"
)

const (
	credentialsSecret = registration.CredentialsSecret
	// leavingKey, in that Secret, is there when the member was seen to leave the fleet.
	leavingKey = "leaving"
	// authorityKey, in that Secret, is who signs the fleet's certificate, if the agent has learned that since it was
	// invited; invitationKey is the hash of that invitation.
	authorityKey  = corev1.ServiceAccountRootCAKey
	invitationKey = "invitation"
)

// store keeps the agent's credentials in its namespace of the member.
type store struct {
	member    client.Client
	namespace string
}

func (s store) read(ctx context.Context, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}}
	if err := s.member.Get(ctx, client.ObjectKeyFromObject(secret), secret); err != nil {
		return secret, fmt.Errorf("secret %s/%s in the member: %w", s.namespace, name, err)
	}
	return secret, nil
}

// key gives the agent's key, made and stored before anybody hears of it.
func (s store) key(ctx context.Context) (*corev1.Secret, error) {
	secret, err := s.read(ctx, credentialsSecret)
	if client.IgnoreNotFound(err) != nil {
		return nil, err
	}
	if len(secret.Data[corev1.TLSPrivateKeyKey]) > 0 {
		return secret, nil
	}
	key, keyErr := registration.NewKey()
	if keyErr != nil {
		return nil, keyErr
	}
	if err == nil {
		if err := s.write(ctx, map[string][]byte{corev1.TLSPrivateKeyKey: key}); err != nil {
			return nil, err
		}
		return s.read(ctx, credentialsSecret)
	}
	secret.Data = map[string][]byte{corev1.TLSPrivateKeyKey: key}
	if err := s.member.Create(ctx, secret); err != nil {
		return nil, fmt.Errorf("storing the agent's key: %w", err)
	}
	return secret, nil
}

// write changes entries of the credentials; nil removes one.
func (s store) write(ctx context.Context, entries map[string][]byte) error {
	secret, err := s.read(ctx, credentialsSecret)
	if err != nil {
		return err
	}
	before := secret.DeepCopy()
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for name, value := range entries {
		if secret.Data[name] = value; value == nil {
			delete(secret.Data, name)
		}
	}
	if err := s.member.Patch(ctx, secret,
		client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("storing the agent's credentials: %w", err)
	}
	return nil
}

// setLeaving remembers that the member is to leave, or not.
func (s store) setLeaving(ctx context.Context, leaving bool) error {
	secret, err := s.read(ctx, credentialsSecret)
	if err != nil || (len(secret.Data[leavingKey]) > 0) == leaving {
		return err
	}
	var value []byte
	if leaving {
		value = []byte("true")
	}
	return s.write(ctx, map[string][]byte{leavingKey: value})
}

// invitation is what the agent was invited with.
type invitation struct {
	member, uid string
	// config leads to the fleet with a token that may have expired.
	config *rest.Config
	// hash tells invitations apart.
	hash string
}

func (s store) invitation(ctx context.Context) (*invitation, error) {
	secret, err := s.read(ctx, registration.InvitationSecret)
	if err != nil {
		return nil, fmt.Errorf("%w; `trellisctl register` makes a manifest that has it", err)
	}
	kubeconfig := secret.Data[registration.InvitationKubeconfig]
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("secret %s/%s, key %s: %w", secret.Namespace, secret.Name,
			registration.InvitationKubeconfig, err)
	}
	i := &invitation{
		member: string(secret.Data[registration.InvitationMember]),
		uid:    string(secret.Data[registration.InvitationUID]), config: config, hash: registration.HashOf(kubeconfig),
	}
	if registration.ValidateName(i.member) != nil || i.uid == "" {
		return nil, fmt.Errorf("secret %s/%s: keys %s and %s must name the member and the UID of its Cluster",
			secret.Namespace, secret.Name, registration.InvitationMember, registration.InvitationUID)
	}
	return i, nil
}

// certificate reads the stored one; nil if there is none that may be used for the invited member now.
func certificate(secret *corev1.Secret, user string, now time.Time) *tls.Certificate {
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil || pair.Leaf.Subject.CommonName != user || !now.Before(pair.Leaf.NotAfter) {
		return nil
	}
	return &pair
}

// halfTime is when half of a certificate's life is over.
func halfTime(leaf *x509.Certificate) time.Time {
	return leaf.NotBefore.Add(leaf.NotAfter.Sub(leaf.NotBefore) / 2)
}

// errUndecided: nobody has accepted the agent yet.
var errUndecided = errors.New("not accepted yet")

// ask has the fleet sign a certificate for a key, and gives it once that is done. It may be repeated.
func ask(ctx context.Context, fleet client.Client, request registration.Request, key []byte) ([]byte, error) {
	signing, err := request.SigningRequest(key)
	if err != nil {
		return nil, err
	}
	found := &certificatesv1.CertificateSigningRequest{}
	err = fleet.Get(ctx, client.ObjectKeyFromObject(signing), found)
	if apierrors.IsNotFound(err) {
		err = fleet.Create(ctx, signing)
		found = signing
	}
	if err != nil {
		return nil, fmt.Errorf("asking the fleet for a certificate: %w", err)
	}
	if words, denied := registration.Denied(found); denied {
		return nil, fmt.Errorf("the fleet denied the certificate: %s", words)
	}
	if len(found.Status.Certificate) == 0 {
		return nil, errUndecided
	}
	if block, _ := pem.Decode(found.Status.Certificate); block == nil {
		return nil, fmt.Errorf("the fleet's certificate in %s is not PEM", found.Name)
	}
	return found.Status.Certificate, nil
}

// logOnce tells about the same state once.
type logOnce struct {
	mu   sync.Mutex
	last string
}

func (l *logOnce) say(log logr.Logger, text string, values ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if state := fmt.Sprint(text, values); state != l.last {
		l.last = state
		log.Info(text, values...)
	}
}
