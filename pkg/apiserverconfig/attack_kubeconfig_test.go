package apiserverconfig

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
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
		"anybody's certificate": {
			server, server + ", insecure-skip-tls-verify: true", "insecure-skip-tls-verify", true,
		},
		"no certificate": {server, `server: "http://10.0.0.1"`, "https URL", false},
		"socket":         {server, `server: "unix:///run/containerd.sock"`, "https URL", false},
		"file as authority": {
			server, server + ", certificate-authority: /srv/kubernetes/ca.crt", "certificate-authority", false,
		},
		"token of the pod": {token, "tokenFile: /var/run/secrets/token", "tokenFile", false},
		"certificate of the server": {
			token, "client-certificate: /srv/tls.crt, client-key: /srv/tls.key", "client-certificate", false,
		},
		"key of the server": {
			token, "client-certificate-data: eA==, client-key: /srv/tls.key", "client-key", false,
		},
		"program": {
			token, "exec: {command: sh, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}", "exec",
			false,
		},
		"plugin": {token, "auth-provider: {name: oidc}", "auth-provider", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			evil := []byte(strings.Replace(kubeconfig, test.old, test.evil, 1))
			for _, allowed := range []bool{false, true} {
				err := validateKubeconfig(evil, permissions{proxy: allowed, unverified: allowed})
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
	if err := validateKubeconfig([]byte(kubeconfig), permissions{}); err != nil {
		t.Errorf("a kubeconfig without all that: %v", err)
	}
}

// TestAttackProxyInPlaceOfTheSeeds plays a tenant whose operator allows proxies, and who names one where the seed
// writes its own.
func TestAttackProxyInPlaceOfTheSeeds(t *testing.T) {
	for plugin, refused := range map[string]bool{"ImagePolicyWebhook": true, "ValidatingAdmissionWebhook": false} {
		g, config := everything()
		config.AdmissionPlugins[1].Name = plugin
		g["images"] = strings.Replace(g["images"], `.com"`, `.com", proxy-url: "http://proxy.example.com"`, 1)
		_, errs, err := Load(t.Context(), g.source(), config,
			Rules{InsecureKubeconfigs: true, KubernetesVersion: "1.36.3"}, field.NewPath("kubeAPIServer"))
		if err != nil {
			t.Fatal(err)
		}
		if got := len(errs) == 1 && errs[0].Field == "kubeAPIServer.admissionPlugins[1].kubeconfigSecretName" &&
			strings.Contains(errs[0].Detail, "proxy-url"); got != refused || len(errs) > 1 {
			t.Errorf("%s: errors = %v, want one about proxy-url: %v", plugin, errs, refused)
		}
	}
}
