package registration

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const (
	// IDAnnotation, on such requests, is the UID of the member's namespace kube-system.
	IDAnnotation = "federation.trellis.garden/cluster-id"
	// VersionAnnotation, on such requests, is the version of the member's Kubernetes.
	VersionAnnotation = "federation.trellis.garden/kubernetes-version"
)

// DefaultCertificateLifetime of agents: they renew at half of it, so a member may be off for half a week.
const DefaultCertificateLifetime = 7 * 24 * time.Hour

// MaxCertificateLifetime is the longest that an agent may ask for.
const MaxCertificateLifetime = 30 * 24 * time.Hour

// maxRequestBytes is far above what agents ask with.
const maxRequestBytes = 16 << 10

// Request is what an agent asks for.
type Request struct {
	// Member and UID are the name and the UID of its Cluster in the fleet.
	Member, UID string
	// ID and Version of the cluster that the agent runs for.
	ID, Version string
	// Lifetime that the certificate is asked to have.
	Lifetime time.Duration
}

// NewKey makes a key for an agent, as PEM.
func NewKey() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

func parseKey(key []byte) (crypto.Signer, error) {
	block, _ := pem.Decode(key)
	if block == nil {
		return nil, errors.New("the agent's key is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("the agent's key: %w", err)
	}
	signer, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("the agent's key is a %T, which signs nothing", parsed)
	}
	return signer, nil
}

// KeyFingerprint is what people compare: of the public half of a key in PEM, in hexadecimal digits.
func KeyFingerprint(key []byte) (string, error) {
	signer, err := parseKey(key)
	if err != nil {
		return "", err
	}
	return fingerprintOf(signer.Public())
}

func fingerprintOf(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(der)
	return hex.EncodeToString(sum[:]), nil
}

// SigningRequest is the object with which an agent asks a fleet for a certificate. Its name tells keys apart.
func (r Request) SigningRequest(key []byte) (*certificatesv1.CertificateSigningRequest, error) {
	signer, err := parseKey(key)
	if err != nil {
		return nil, err
	}
	user := AgentUser(&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: r.Member, UID: types.UID(r.UID)}})
	der, err := x509.CreateCertificateRequest(rand.Reader,
		&x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{AgentGroup}}}, signer)
	if err != nil {
		return nil, err
	}
	fingerprint, err := fingerprintOf(signer.Public())
	if err != nil {
		return nil, err
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "agent-" + r.Member + "-" + fingerprint[:16],
			Labels:      map[string]string{clusterv1alpha1.MemberLabel: r.Member},
			Annotations: map[string]string{IDAnnotation: r.ID, VersionAnnotation: r.Version},
		},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName:        certificatesv1.KubeAPIServerClientSignerName,
			ExpirationSeconds: new(int32(r.Lifetime.Seconds())),
			Usages:            agentUsages(),
		},
	}, nil
}

func agentUsages() []certificatesv1.KeyUsage {
	return []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}
}

// Fingerprint is that of the key that a request is for. An error tells why the request is not one for the agent of the
// member.
func Fingerprint(request *certificatesv1.CertificateSigningRequest, member *clusterv1alpha1.Cluster) (string, error) {
	parsed, err := parseRequest(request)
	if err != nil {
		return "", err
	}
	if err := checkRequest(request, parsed, member.Name, AgentUser(member)); err != nil {
		return "", err
	}
	return fingerprintOf(parsed.PublicKey)
}

// parseRequest reads what is to be signed. Who asks for it has the key.
func parseRequest(request *certificatesv1.CertificateSigningRequest) (*x509.CertificateRequest, error) {
	if len(request.Spec.Request) > maxRequestBytes {
		return nil, fmt.Errorf("request %s: %d bytes, more than %d", request.Name, len(request.Spec.Request),
			maxRequestBytes)
	}
	block, rest := pem.Decode(request.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return nil, fmt.Errorf("request %s: not one certificate request as PEM", request.Name)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("request %s: %w", request.Name, err)
	}
	if parsed.CheckSignature() != nil {
		return nil, fmt.Errorf("request %s: its signature is wrong", request.Name)
	}
	return parsed, nil
}

// checkRequest tells why a request is for anything else than a client certificate of that user, who is the agent of the
// member.
func checkRequest(request *certificatesv1.CertificateSigningRequest, parsed *x509.CertificateRequest,
	member, user string) error {
	subject, lifetime := parsed.Subject, lifetimeOf(request)
	switch {
	// Names has every attribute: there is none besides these two.
	case request.Labels[clusterv1alpha1.MemberLabel] != member || subject.CommonName != user ||
		!slices.Equal(subject.Organization, []string{AgentGroup}) || len(subject.Names) != 2:
		return fmt.Errorf("request %s: for %q of %q, not for the agent of member %q", request.Name, subject.CommonName,
			subject.Organization, member)
	case len(parsed.Extensions) > 0:
		return fmt.Errorf("request %s: asks for other names or extensions too", request.Name)
	case request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName ||
		!slices.Equal(request.Spec.Usages, agentUsages()):
		return fmt.Errorf("request %s: for signer %s and usages %v", request.Name, request.Spec.SignerName,
			request.Spec.Usages)
	case lifetime <= 0 || lifetime > MaxCertificateLifetime:
		return fmt.Errorf("request %s: for a lifetime of %s, and %s is the longest", request.Name, lifetime,
			MaxCertificateLifetime)
	}
	return nil
}

// lifetimeOf what is asked for; 0 for as long as the signer likes.
func lifetimeOf(request *certificatesv1.CertificateSigningRequest) time.Duration {
	if request.Spec.ExpirationSeconds == nil {
		return 0
	}
	return time.Duration(*request.Spec.ExpirationSeconds) * time.Second
}

// isPending tells whether nobody has decided about a request yet.
func isPending(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Conditions) == 0 && len(request.Status.Certificate) == 0
}

func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	_, denied := Denied(request)
	return !denied && slices.ContainsFunc(request.Status.Conditions,
		func(c certificatesv1.CertificateSigningRequestCondition) bool {
			return c.Type == certificatesv1.CertificateApproved
		})
}

// Denied gives the words with which a request was denied, or could not be signed.
func Denied(request *certificatesv1.CertificateSigningRequest) (string, bool) {
	for _, c := range request.Status.Conditions {
		if c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			return c.Message, true
		}
	}
	return "", false
}

// Approve approves a request.
func Approve(ctx context.Context, fleet client.Client, request *certificatesv1.CertificateSigningRequest,
	reason, message string) error {
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: message,
		LastUpdateTime: metav1.Now(),
	})
	if err := fleet.SubResource("approval").Update(ctx, request); err != nil {
		return fmt.Errorf("approving %s: %w", request.Name, err)
	}
	return nil
}
