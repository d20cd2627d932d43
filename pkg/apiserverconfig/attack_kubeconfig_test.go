package apiserverconfig

import (
	"strings"
	"testing"
)

// TestAttackKubeconfigs plays a tenant who gives kube-apiserver, which runs in the seed, the kubeconfig of a webhook.
func TestAttackKubeconfigs(t *testing.T) {
	server, token := `server: "https://webhook.example.com"`, "token: t"
	tests := map[string]struct{ old, evil, want string }{
		"proxy in the seed's network": {server, server + `, proxy-url: "http://10.0.0.1:3128"`, "proxy-url"},
		"proxy of another scheme":     {server, server + `, proxy-url: "socks5://127.0.0.1:1080"`, "proxy-url"},
		"anybody's certificate":       {server, server + ", insecure-skip-tls-verify: true", "insecure-skip-tls-verify"},
		"no certificate":              {server, `server: "http://10.0.0.1"`, "https URL"},
		"socket":                      {server, `server: "unix:///run/containerd.sock"`, "https URL"},
		"file as authority":           {server, server + ", certificate-authority: /srv/kubernetes/ca.crt", "certificate-authority"},
		"token of the pod":            {token, "tokenFile: /var/run/secrets/token", "tokenFile"},
		"certificate of the server":   {token, "client-certificate: /srv/tls.crt, client-key: /srv/tls.key", "client-certificate"},
		"key of the server":           {token, "client-certificate-data: eA==, client-key: /srv/tls.key", "client-key"},
		"program":                     {token, "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "exec"},
		"plugin":                      {token, "auth-provider: {name: oidc}", "auth-provider"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := validateKubeconfig([]byte(strings.Replace(kubeconfig, test.old, test.evil, 1)))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one about %s", err, test.want)
			}
		})
	}
	if err := validateKubeconfig([]byte(kubeconfig)); err != nil {
		t.Errorf("a kubeconfig without all that: %v", err)
	}
}
