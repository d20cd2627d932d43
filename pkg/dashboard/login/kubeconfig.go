package login

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/trellis-garden/trellis/pkg/dashboard/clusters"
	"github.com/trellis-garden/trellis/pkg/dashboard/reply"
	"github.com/trellis-garden/trellis/pkg/dashboard/session"
	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// ParseKubeconfig reads the credential of a kubeconfig for one of the servers, which are addresses of the garden.
// Nothing else that it says is followed: no command, no file, no proxy, and no server. An error names the causes.
func ParseKubeconfig(text string, servers []*url.URL) (session.Credential, error) {
	config, err := kubeconfig.Contained([]byte(text))
	if err != nil {
		return session.Credential{}, refused("", err.Error())
	}
	if field, problem := notTaken(config, servers); problem != "" {
		return session.Credential{}, refused(field, problem)
	}
	if config.BearerToken != "" {
		if err := checkToken(config.BearerToken); err != nil {
			return session.Credential{}, refused("users[].user.token", err.Error())
		}
		return session.Credential{Token: config.BearerToken}, nil
	}
	if len(config.CertData) == 0 || len(config.KeyData) == 0 {
		return session.Credential{}, refused("users[].user",
			"it must have a token, or a client certificate with its key")
	}
	if _, err := tls.X509KeyPair(config.CertData, config.KeyData); err != nil {
		return session.Credential{}, refused("users[].user.client-certificate-data", err.Error())
	}
	return session.Credential{Certificate: config.CertData, Key: config.KeyData}, nil
}

// notTaken says what a kubeconfig asks for that is not done.
func notTaken(config *rest.Config, servers []*url.URL) (field, problem string) {
	server, err := clusters.ServerURL(config.Host)
	switch {
	case err != nil:
		return "clusters[].cluster.server", err.Error()
	case !isOneOf(server, servers):
		return "clusters[].cluster.server", "it is not the API of this garden, for which alone one logs in here"
	case config.Proxy != nil:
		return "clusters[].cluster.proxy-url", "no proxy of others is used"
	case config.Impersonate.UserName != "" || config.Impersonate.UID != "" || len(config.Impersonate.Groups) > 0 ||
		len(config.Impersonate.Extra) > 0:
		return "users[].user.as", "one logs in as oneself"
	case config.Username != "" || config.Password != "":
		return "users[].user.username", "the garden knows no passwords"
	}
	return "", ""
}

func isOneOf(server *url.URL, servers []*url.URL) bool {
	for _, known := range servers {
		if known.Host == server.Host && known.Path == server.Path {
			return true
		}
	}
	return false
}

func refused(field, problem string) error {
	return reply.Invalid("the kubeconfig is not taken: "+problem,
		metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: field, Message: problem})
}

// tokenForm is that of bearer tokens (RFC 6750).
var tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)

// maxToken leaves room in the cookies of a session.
const maxToken = 12 << 10

func checkToken(token string) error {
	switch {
	case token == "":
		return errors.New("the token is empty")
	case len(token) > maxToken:
		return errors.New("the token is too long for a session")
	case !tokenForm.MatchString(token):
		return errors.New("it does not have the form of a bearer token: is there a space or a line break in it?")
	}
	return nil
}

// expiryOf is when a credential ends, as far as it says so itself. The garden has the last word.
func expiryOf(credential session.Credential) time.Time {
	if len(credential.Certificate) > 0 {
		return certificateExpiry(credential)
	}
	parts := strings.Split(credential.Token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(raw, &claims) != nil || claims.Expires <= 0 || claims.Expires > 1e11 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0).UTC()
}

func certificateExpiry(credential session.Credential) time.Time {
	pair, err := tls.X509KeyPair(credential.Certificate, credential.Key)
	if err != nil || len(pair.Certificate) == 0 {
		return time.Time{}
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return time.Time{}
	}
	return leaf.NotAfter.UTC()
}
