package apiserverconfig

import (
	"strings"
	"testing"
)

// TestAttackKubeconfigs plays a tenant who gives kube-apiserver, which runs in the seed, the kubeconfig of a webhook.
func TestAttackKubeconfigs(t *testing.T) {
	server, token := `server: "https://webhook.example.com"`, "token: t"
	tests := map[string]struct {
		old, evil, want string
		// mayBeAllowed says that operators may permit it.
		mayBeAllowed bool
	}{
		"proxy in the seed's network": {server, server + `, proxy-url: "http://10.0.0.1:3128"`, "proxy-url", true},
		"proxy of another scheme":     {server, server + `, proxy-url: "socks5://127.0.0.1:1080"`, "proxy-url", true},
		"anybody's certificate":       {server, server + ", insecure-skip-tls-verify: true", "insecure-skip-tls-verify", true},
		"no certificate":              {server, `server: "http://10.0.0.1"`, "https URL", false},
		"socket":                      {server, `server: "unix:///run/containerd.sock"`, "https URL", false},
		"file as authority":           {server, server + ", certificate-authority: /srv/kubernetes/ca.crt", "certificate-authority", false},
		"token of the pod":            {token, "tokenFile: /var/run/secrets/token", "tokenFile", false},
		"certificate of the server":   {token, "client-certificate: /srv/tls.crt, client-key: /srv/tls.key", "client-certificate", false},
		"key of the server":           {token, "client-certificate-data: eA==, client-key: /srv/tls.key", "client-key", false},
		"program":                     {token, "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "exec", false},
		"plugin":                      {token, "auth-provider: {name: oidc}", "auth-provider", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			evil := []byte(strings.Replace(kubeconfig, test.old, test.evil, 1))
			for _, allowed := range []bool{false, true} {
				err := validateKubeconfig(evil, allowed)
				if allowed && test.mayBeAllowed {
					if err != nil {
						t.Errorf("with the operator's permission: %v", err)
					}
				} else if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("with permission %v: error = %v, want one about %s", allowed, err, test.want)
				}
			}
		})
	}
	if err := validateKubeconfig([]byte(kubeconfig), false); err != nil {
		t.Errorf("a kubeconfig without all that: %v", err)
	}
}
