package trellisctl

import (
	"bytes"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	certutil "k8s.io/client-go/util/cert"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// What people take for a fleet, and is none, or none any more for their credentials.
func TestOtherThanAFleet(t *testing.T) {
	answer := func(status int, body string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_, _ = w.Write([]byte(body))
		})
	}
	failure := func(status int, reason metav1.StatusReason) http.Handler {
		return answer(status, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "`+string(reason)+
			`", "message": "no"}`)
	}
	for name, tc := range map[string]struct {
		handler http.Handler
		other   bool
		want    string
	}{
		"another cluster": {
			answer(http.StatusOK, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`), false,
			"is not that of a fleet: it serves no kind Cluster.",
		},
		"expired credentials": {
			failure(http.StatusUnauthorized, metav1.StatusReasonUnauthorized), false, "does not accept the credentials",
		},
		"rotated certificates": {
			answer(http.StatusOK, "{}"), true, "has a certificate of another authority than the kubeconfig",
		},
		"out of order": {
			failure(http.StatusInternalServerError, metav1.StatusReasonInternalError), false,
			"connecting to the fleet at https://",
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewTLSServer(tc.handler)
			defer server.Close()
			config := clientcmdapi.NewConfig()
			config.Clusters["it"] = &clientcmdapi.Cluster{
				Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
					Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
				}),
			}
			config.Contexts["it"], config.CurrentContext = &clientcmdapi.Context{Cluster: "it"}, "it"
			if tc.other {
				authority, _, err := certutil.GenerateSelfSignedCertKey("other", nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				config.Clusters["it"].CertificateAuthorityData = authority
			}
			path := filepath.Join(t.TempDir(), "fleet.yaml")
			if err := clientcmd.WriteToFile(*config, path); err != nil {
				t.Fatal(err)
			}
			root := NewCommand()
			root.SetOut(&bytes.Buffer{})
			root.SetArgs([]string{"members", "--fleet-kubeconfig", path})
			if err := root.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %s", err, tc.want)
			}
		})
	}
}

// Agents reach a fleet from elsewhere than who uses the garden's endpoints.
func TestExternalAddress(t *testing.T) {
	shoot := &gardencorev1beta1.Shoot{}
	if got := externalAddress(shoot); got != "" {
		t.Errorf("got %q of a shoot that has none", got)
	}
	shoot.Status.AdvertisedAddresses = []gardencorev1beta1.ShootAdvertisedAddress{
		{Name: gardencorev1beta1.AdvertisedAddressInternal, URL: "https://internal"},
		{Name: gardencorev1beta1.AdvertisedAddressExternal, URL: "https://external"},
	}
	if got := externalAddress(shoot); got != "https://external" {
		t.Errorf("got %q", got)
	}
}
