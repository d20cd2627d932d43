package kubeconfig_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/kubeconfig"
)

// text is a kubeconfig of a server and a user, beside others that are not used.
const text = `
apiVersion: v1
kind: Config
current-context: x
clusters: [{name: c, cluster: {server: "https://c.example"%s}}, {name: other, cluster: {server: "https://other.example", certificate-authority: /other}}]
users: [{name: u, user: {%s}}, {name: other, user: {tokenFile: /other}}]
contexts: [{name: x, context: {cluster: c, user: u}}, {name: other, context: {cluster: other, user: other}}]
`

func TestContained(t *testing.T) {
	for name, test := range map[string]struct{ cluster, user, refused string }{
		"token": {"", "token: t", ""},
		"command": {
			"", "exec: {apiVersion: client.authentication.k8s.io/v1, command: /bin/true, interactiveMode: Never}",
			`user "u"`,
		},
		"provider":        {"", "auth-provider: {name: oidc}", `user "u"`},
		"token's file":    {"", "tokenFile: /token", `user "u"`},
		"both":            {"", "token: t, tokenFile: /token", `user "u"`},
		"certificate":     {"", "client-certificate: /tls.crt", `user "u"`},
		"key":             {"", "client-key: /tls.key", `user "u"`},
		"authority":       {", certificate-authority: /ca.crt", "token: t", `cluster "c"`},
		"not a structure": {": ", "", "yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := kubeconfig.Contained(fmt.Appendf(nil, text, test.cluster, test.user))
			switch {
			case test.refused == "" && (err != nil || config.Host != "https://c.example" || config.BearerToken != "t"):
				t.Errorf("got %v, %v", config, err)
			case test.refused != "" && (err == nil || !strings.Contains(err.Error(), test.refused)):
				t.Errorf("got %v, want it to name %s", err, test.refused)
			}
		})
	}
}

func TestContainedNeedsAContext(t *testing.T) {
	if config, err := kubeconfig.Contained([]byte("apiVersion: v1\nkind: Config\n")); err == nil {
		t.Errorf("got %v", config)
	}
}
