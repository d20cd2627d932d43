// Package hostile is what owners of shoots may put in the place of their API servers' answers, and others in the place
// of kubeconfigs.
package hostile

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Refused is what who reads from Shoot is to find out before it has read.
const Refused = "was cut off: it is larger than 256 MiB"

// Shoot starts a server that announces a TiB with each answer, and returns its kubeconfig.
func Shoot(t testing.TB) []byte {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "1099511627776")
		w.WriteHeader(http.StatusOK)
	}))
	t.Cleanup(server.Close)
	return kubeconfigOf(t, server, &clientcmdapi.AuthInfo{Token: "t"})
}

// kubeconfigOf leads to a server as a user.
func kubeconfigOf(t testing.TB, server *httptest.Server, user *clientcmdapi.AuthInfo) []byte {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.CurrentContext = "shoot"
	config.Contexts["shoot"] = &clientcmdapi.Context{Cluster: "shoot", AuthInfo: "admin"}
	config.AuthInfos["admin"] = user
	config.Clusters["shoot"] = &clientcmdapi.Cluster{
		Server: server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{
			Type: "CERTIFICATE", Bytes: server.Certificate().Raw,
		}),
	}
	kubeconfig, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
