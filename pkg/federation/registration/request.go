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
	// MemberLabel, on certificate signing requests of agents, names the member.
	MemberLabel = "federation.trellis.garden/cluster"
	// IDAnnotation, on such requests, is the UID of the member's namespace kube-system.
	IDAnnotation = "federation.trellis.garden/cluster-id"
	// VersionAnnotation, on such requests, is the version of the member's Kubernetes.
	VersionAnnotation = "federation.trellis.garden/kubernetes-version"
)

// DefaultCertificateLifetime of agents: they renew at half of it, so a member may be off for half a week.
const DefaultCertificateLifetime = 7 * 24 * time.Hour

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
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: user, Organization: []string{AgentGroup}}}, signer)
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
			Labels:      map[string]string{MemberLabel: r.Member},
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

// Fingerprint is that of the key that a request is for. An error tells why the request is not one for the agent of the member.
func Fingerprint(request *certificatesv1.CertificateSigningRequest, member *clusterv1alpha1.Cluster) (string, error) {
	block, rest := pem.Decode(request.Spec.Request)
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(rest) > 0 {
		return "", fmt.Errorf("request %s: not one certificate request as PEM", request.Name)
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return "", fmt.Errorf("request %s: %w", request.Name, err)
	}
	switch {
	case parsed.CheckSignature() != nil:
		return "", fmt.Errorf("request %s: its signature is wrong", request.Name)
	case request.Labels[MemberLabel] != member.Name || parsed.Subject.CommonName != AgentUser(member) || !slices.Equal(parsed.Subject.Organization, []string{AgentGroup}):
		return "", fmt.Errorf("request %s: for %q of %q, not for the agent of member %q", request.Name, parsed.Subject.CommonName, parsed.Subject.Organization, member.Name)
	case len(parsed.DNSNames)+len(parsed.EmailAddresses)+len(parsed.IPAddresses)+len(parsed.URIs) > 0:
		return "", fmt.Errorf("request %s: asks for other names too", request.Name)
	case request.Spec.SignerName != certificatesv1.KubeAPIServerClientSignerName || !slices.Equal(request.Spec.Usages, agentUsages()):
		return "", fmt.Errorf("request %s: for signer %s and usages %v", request.Name, request.Spec.SignerName, request.Spec.Usages)
	}
	return fingerprintOf(parsed.PublicKey)
}

// IsRenewal tells whether a request is one of an accepted member's agent for itself.
func IsRenewal(request *certificatesv1.CertificateSigningRequest, member *clusterv1alpha1.Cluster) bool {
	_, err := Fingerprint(request, member)
	return err == nil && member.Spec.SyncMode == clusterv1alpha1.Pull && member.DeletionTimestamp == nil &&
		request.Spec.Username == AgentUser(member) && request.Annotations[IDAnnotation] == member.Spec.ID
}

// IsPending tells whether nobody has decided about a request yet.
func IsPending(request *certificatesv1.CertificateSigningRequest) bool {
	return len(request.Status.Conditions) == 0 && len(request.Status.Certificate) == 0
}

func isApproved(request *certificatesv1.CertificateSigningRequest) bool {
	_, denied := Denied(request)
	return !denied && slices.ContainsFunc(request.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
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
func Approve(ctx context.Context, fleet client.Client, request *certificatesv1.CertificateSigningRequest, reason, message string) error {
	request = request.DeepCopy()
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastUpdateTime: metav1.Now(),
	})
	if err := fleet.SubResource("approval").Update(ctx, request); err != nil {
		return fmt.Errorf("approving %s: %w", request.Name, err)
	}
	return nil
}
