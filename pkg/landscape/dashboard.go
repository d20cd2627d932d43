package landscape

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"helm.sh/helm/v3/pkg/release"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apply"
	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/secrets"
)

const (
	dashboardHost = "dashboard.garden." + domain
	issuerHost    = "login.garden." + domain
	issuerURL     = "https://" + issuerHost
	// issuerName is the name of the issuer's chart, release and Secret with passwords.
	issuerName = "local-issuer"
	// dashboardClient is the dashboard at the issuer, and the audience of tokens that the garden takes.
	dashboardClient = "dashboard"
	// loginGroups begins the names of the issuer's groups in the garden.
	loginGroups = "login:"
	// authenticationConfigMap has the issuers for the garden's kube-apiserver; the chart garden makes it.
	authenticationConfigMap = "garden-kube-apiserver-authentication"
	// sessionKeyBytes is the size of the key that encrypts sessions.
	sessionKeyBytes = 32
)

// dashboardIssuers are the values of the chart garden for the garden's kube-apiserver: it takes what the landscape's
// issuer says.
func dashboardIssuers(authority []byte) map[string]any {
	return map[string]any{"issuers": []any{map[string]any{
		"url": issuerURL, "audiences": []any{dashboardClient}, "certificateAuthority": string(authority),
		"username": map[string]any{"claim": "sub", "prefix": loginGroups},
		"groups":   map[string]any{"claim": "groups", "prefix": loginGroups},
	}}}
}

// dashboardValues are those of the chart garden for the dashboard. The kubeconfig of the seed that operators find in
// the garden names the host's address, which is another one in a pod.
func dashboardValues(image, terminalImage string, replicas int64, authority []byte,
	loopback netip.Addr) map[string]any {
	return map[string]any{
		"enabled": true, "image": image, "terminalImage": terminalImage, "replicas": replicas,
		"host": dashboardHost, "port": int64(gatewayPort),
		"garden": map[string]any{
			"server": gardenServer, "certificateAuthority": string(authority), "addresses": []any{"https://" + gardenHost},
		},
		"endpoints": []any{map[string]any{
			"domain": loopback.String(), "address": fmt.Sprintf("%s:%d", nodeIP, apiPort),
		}},
		"issuers": []any{map[string]any{
			"name": "landscape", "title": "Accounts of this landscape", "url": issuerURL, "clientID": dashboardClient,
			"certificateAuthority": string(authority), "scopes": []any{"openid", "email", "groups"},
		}},
	}
}

// issuerValues are those of the issuer's chart.
func issuerValues(image string) map[string]any {
	return map[string]any{
		"image": image, "host": issuerHost, "port": int64(gatewayPort), "secretName": issuerName,
		"clients": []any{dashboardClient + "=https://" + dashboardHost + "/api/login/callback"},
	}
}

// dashboardSecrets makes the certificates of dashboard and issuer, and the key of sessions, which outlives both.
func (r *run) dashboardSecrets(ctx context.Context, c client.Client, manager secrets.Manager) error {
	for name, host := range map[string]string{"garden-dashboard": dashboardHost, issuerName: issuerHost} {
		made, err := manager.Generate(ctx, secrets.CertificateConfig{
			Name: name + "-server", CommonName: name, CertType: secrets.ServerCert, SigningCA: "ca",
			DNSNames: []string{host},
		})
		if err != nil {
			return err
		}
		err = writeSecret(ctx, c, gardenNS, name+"-tls",
			map[string][]byte{"tls.crt": made.Data["tls.crt"], "tls.key": made.Data["tls.key"]})
		if err != nil {
			return err
		}
	}
	keys, err := r.keep("dashboard-session-keys", func() ([]byte, error) { return newSessionKey(), nil })
	if err != nil {
		return err
	}
	return writeSecret(ctx, c, gardenNS, "garden-dashboard-session", map[string][]byte{"keys": keys})
}

func newSessionKey() []byte {
	key := make([]byte, sessionKeyBytes)
	_, _ = rand.Read(key) // it never fails
	return append(base64.StdEncoding.AppendEncode(nil, key), '\n')
}

// installIssuer installs the issuer with which people log in to the dashboard.
func (r *run) installIssuer(ctx context.Context, c *cluster) (*release.Release, error) {
	dir, err := r.localProviderDir()
	if err != nil {
		return nil, err
	}
	chart, err := helm.LoadFS(os.DirFS(filepath.Join(r.Root, dir, "charts")), issuerName)
	if err != nil {
		return nil, err
	}
	image, err := r.image(localProvider)
	if err != nil {
		return nil, err
	}
	r.Step("chart %s", issuerName)
	return c.helm.Install(ctx, helm.Release{
		Namespace: gardenNS, Name: issuerName, Chart: chart, Values: issuerValues(image),
	})
}

// operatorsOfIssuer are operators of the garden.
func operatorsOfIssuer() *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: "trellis:landscape:operators"},
		RoleRef: rbacv1.RoleRef{
			APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "gardener.cloud:system:administrators",
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: loginGroups + "operators"}},
	}
}

// bindOperators gives the issuer's operators their rights; what its other users may do, the demo project says.
func bindOperators(ctx context.Context, garden *cluster) error {
	plain, err := apply.ToUnstructured(garden.client.Scheme(), operatorsOfIssuer())
	if err != nil {
		return err
	}
	return garden.applyPatiently(ctx, plain)
}

// dashboardSummary tells where the dashboard is, and who logs in how.
func (l *Landscape) dashboardSummary(loopback string) []string {
	password := fmt.Sprintf("%s --kubeconfig %s -n %s get secret %s -o go-template='{{range $name, $value := .data}}"+
		"{{if ne $name \"signing-keys.json\"}}{{$name}} {{$value | base64decode}}{{\"\\n\"}}{{end}}{{end}}'",
		l.fromHere(filepath.Join(l.BinDir(), "kubectl")), l.fromHere(l.RuntimeKubeconfig()), gardenNS, issuerName)
	return []string{
		"Dashboard: https://" + dashboardHost + ", for users operator, project-admin and viewer.",
		"  its names, for /etc/hosts   " + strings.Join([]string{loopback, dashboardHost, issuerHost}, " "),
		"  passwords                   " + password,
	}
}
