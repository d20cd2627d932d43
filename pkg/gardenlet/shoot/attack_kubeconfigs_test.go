package shoot

import (
	"strings"
	"testing"
)

// TestAttackKubeconfigsWhenReconciled plays a tenant who changes the Secret with a webhook's kubeconfig after the Shoot was written.
func TestAttackKubeconfigsWhenReconciled(t *testing.T) {
	const server = `server: "https://webhook.example.com"`
	for _, evil := range []string{`proxy-url: "http://10.0.0.1:3128"`, "insecure-skip-tls-verify: true"} {
		for _, allowed := range []bool{false, true} {
			in := inputs()
			allSettings(in)
			in.InsecureKubeconfigs = allowed
			in.Files.AuthorizerKubeconfigs["opa"] = []byte(strings.Replace(webhookKubeconfig, server, server+", "+evil, 1))
			_, err := NewPlan(in, gateway(), images())
			if refused := err != nil && strings.Contains(err.Error(), strings.SplitN(evil, ":", 2)[0]); refused == allowed {
				t.Errorf("%s, allowed by the operator: %v: error = %v", evil, allowed, err)
			}
		}
	}
}
