//go:build e2e

package e2e

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

var uuidPattern = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// listed is what gardenctl reads of a list.
type listed struct {
	Metadata struct{ RemainingItemCount *int64 }
	Items    []struct {
		Metadata struct{ Name, Namespace, UID string }
		Status   struct {
			TechnicalID         string
			AdvertisedAddresses []struct{ Name, URL string }
		}
	}
}

func (k kubectl) list(t *testing.T, path string) listed {
	t.Helper()
	var result listed
	if err := json.Unmarshal([]byte(k.run(t, "get", "--raw", path)), &result); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	for _, item := range result.Items {
		if !uuidPattern.MatchString(item.Metadata.UID) {
			t.Errorf("%s: UID %q of %s is not a UUID", path, item.Metadata.UID, item.Metadata.Name)
		}
	}
	return result
}

// The calls of gardenctl-v2 when it targets a project, a shoot and a shoot's control plane, and those of gardenlogin
// when it opens a shoot: selected lists, the garden's identity, the CA, and a certificate in the one form that it
// takes.
func TestCallsOfGardenctl(t *testing.T) {
	l := open(t)
	garden := l.gardenKubectl()
	const core = "/apis/core.gardener.cloud/v1beta1"

	projects := garden.list(t, core+"/projects?fieldSelector=spec.namespace%3Dgarden-demo&limit=1")
	if len(projects.Items) != 1 || projects.Items[0].Metadata.Name != "demo" {
		t.Errorf("the project of namespace garden-demo: %+v", projects.Items)
	}
	identity := strings.TrimSpace(garden.run(t, "-n", "kube-system", "get", "configmap", "cluster-identity", "-o",
		"jsonpath={.data.cluster-identity}"))
	if !regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9_-]*[a-zA-Z0-9])?$`).MatchString(identity) {
		t.Errorf("identity %q", identity)
	}
	shoots := garden.list(t, core+"/shoots?fieldSelector=metadata.name%3Dmember1%2Cspec.seedName%3Dlocal&limit=2")
	if len(shoots.Items) != 1 || (shoots.Metadata.RemainingItemCount != nil &&
		*shoots.Metadata.RemainingItemCount > 0) {
		t.Fatalf("the only member1: %+v", shoots)
	}
	status := shoots.Items[0].Status
	if status.TechnicalID != "shoot--demo--member1" {
		t.Errorf("technical ID %q", status.TechnicalID)
	}
	if label := garden.run(t, "get", "namespace", "garden-demo", "-o",
		`jsonpath={.metadata.labels.project\.gardener\.cloud/name}`); label != "demo" {
		t.Errorf("label of the project's namespace: %q", label)
	}
	if ca := garden.run(t, "-n", "garden-demo", "get", "configmap", "member1.ca-cluster", "-o",
		`jsonpath={.data.ca\.crt}`); !strings.Contains(ca, "BEGIN CERTIFICATE") {
		t.Errorf("ConfigMap member1.ca-cluster: %q", ca)
	}
	for _, level := range []string{"admin", "viewer"} {
		t.Run(level, func(t *testing.T) {
			kubeconfig := requestKubeconfig(t, garden, level)
			checkLikeGardenlogin(t, kubeconfig, status.AdvertisedAddresses)
		})
	}
}

// requestKubeconfig asks for a kubeconfig of member1 as gardenlogin does.
func requestKubeconfig(t *testing.T, garden kubectl, level string) *clientcmdapi.Config {
	t.Helper()
	kind := map[string]string{"admin": "AdminKubeconfigRequest", "viewer": "ViewerKubeconfigRequest"}[level]
	request := `{"apiVersion":"authentication.gardener.cloud/v1alpha1","kind":"` + kind +
		`","spec":{"expirationSeconds":900}}`
	out, err := garden.try(t.Context(), request, "create", "--raw",
		"/apis/core.gardener.cloud/v1beta1/namespaces/garden-demo/shoots/member1/"+level+"kubeconfig", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	var response struct {
		Status struct {
			Kubeconfig          []byte
			ExpirationTimestamp time.Time
		}
	}
	if err := json.Unmarshal([]byte(out), &response); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(response.Status.ExpirationTimestamp); left <= 0 || left > 16*time.Minute {
		t.Errorf("valid for %s, asked for 15m", left)
	}
	kubeconfig, err := clientcmd.Load(response.Status.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// checkLikeGardenlogin finds the credentials by each advertised address; gardenlogin refuses a chain and any key that
// is not a PEM block "RSA PRIVATE KEY".
func checkLikeGardenlogin(t *testing.T, kubeconfig *clientcmdapi.Config, addresses []struct{ Name, URL string }) {
	t.Helper()
	if len(addresses) == 0 {
		t.Error("no advertised addresses")
	}
	for _, address := range addresses {
		var servers []string
		for _, cluster := range kubeconfig.Clusters {
			servers = append(servers, cluster.Server)
		}
		if !slices.Contains(servers, address.URL) {
			t.Errorf("no cluster has the server %s of address %s, but %v", address.URL, address.Name, servers)
		}
	}
	user := kubeconfig.AuthInfos[kubeconfig.Contexts[kubeconfig.CurrentContext].AuthInfo]
	certificate, rest := pem.Decode(user.ClientCertificateData)
	if certificate == nil || len(strings.TrimSpace(string(rest))) > 0 || len(certificate.Headers) > 0 {
		t.Fatal("the client certificate must be one PEM block without headers")
	}
	if _, err := x509.ParseCertificate(certificate.Bytes); err != nil {
		t.Error(err)
	}
	key, rest := pem.Decode(user.ClientKeyData)
	if key == nil || key.Type != "RSA PRIVATE KEY" || len(strings.TrimSpace(string(rest))) > 0 {
		t.Error("the client key must be one PEM block of type RSA PRIVATE KEY")
	}
}
