package plan_test

import (
	"strings"
	"testing"

	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

// TestAttackKubeconfigsWhenReconciled plays a tenant who changes the Secret with a webhook's kubeconfig after the
// Shoot was written.
func TestAttackKubeconfigsWhenReconciled(t *testing.T) {
	const server = `server: "https://webhook.example.com"`
	for _, evil := range []string{`proxy-url: "http://10.0.0.1:3128"`, "insecure-skip-tls-verify: true"} {
		for _, allowed := range []bool{false, true} {
			in := plantest.Inputs()
			plantest.AllSettings(in)
			in.InsecureKubeconfigs = allowed
			in.Files.AuthorizerKubeconfigs["opa"] = []byte(strings.Replace(plantest.WebhookKubeconfig, server,
				server+", "+evil, 1))
			_, err := plan.New(in, plantest.Gateway(), plantest.Images())
			if refused := err != nil && strings.Contains(err.Error(),
				strings.SplitN(evil, ":", 2)[0]); refused == allowed {
				t.Errorf("%s, allowed by the operator: %v: error = %v", evil, allowed, err)
			}
		}
	}
}
