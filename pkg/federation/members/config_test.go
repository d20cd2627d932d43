package members

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

const memberKubeconfig = `
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://from-kubeconfig"}}]
users: [{name: u, user: {%s}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
`

func TestRESTConfig(t *testing.T) {
	withUser := func(user string) map[string][]byte {
		return map[string][]byte{"kubeconfig": []byte(strings.Replace(memberKubeconfig, "%s", user, 1))}
	}
	tests := map[string]struct {
		endpoint string
		secret   map[string][]byte
		host     string
		err      string
	}{
		"token": {"https://a", map[string][]byte{"token": []byte("t")}, "https://a", ""},
		"certificate": {
			"https://a", map[string][]byte{"tls.crt": []byte("c"), "tls.key": []byte("k")}, "https://a", "",
		},
		"kubeconfig":                {"", withUser("token: t"), "https://from-kubeconfig", ""},
		"kubeconfig, other address": {"https://a", withUser("token: t"), "https://a", ""},
		"nothing":                   {"https://a", nil, "", "has neither a kubeconfig nor a token"},
		"plain": {
			"http://a", map[string][]byte{"token": []byte("t")}, "", "must begin with https://",
		},
		"no endpoint": {"", map[string][]byte{"token": []byte("t")}, "", "spec.apiEndpoint is empty"},
		"a command is never run": {
			"", withUser("exec: {apiVersion: client.authentication.k8s.io/v1, command: rm, interactiveMode: Never}"),
			"", "no commands and no files",
		},
		"a file is never read": {"", withUser("tokenFile: /etc/passwd"), "", "no commands and no files"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{APIEndpoint: tc.endpoint}}
			config, err := RESTConfig(cluster, &corev1.Secret{Data: tc.secret})
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Fatalf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil || config.Host != tc.host {
				t.Errorf("got %v, %v", config, err)
			}
		})
	}
}

func clusterWith(proxyURL string, header map[string]string) *clusterv1alpha1.Cluster {
	return &clusterv1alpha1.Cluster{Spec: clusterv1alpha1.ClusterSpec{
		APIEndpoint: "https://member.example:443", InsecureSkipTLSVerification: true, ProxyURL: proxyURL,
		ProxyHeader: header,
	}}
}

func secretWithToken() *corev1.Secret {
	return &corev1.Secret{Data: map[string][]byte{clusterv1alpha1.SecretToken: []byte("t")}}
}
