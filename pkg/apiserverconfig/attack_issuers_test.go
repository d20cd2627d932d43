package apiserverconfig

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestAttackIssuersOfOldAPIServers plays the owner of a cluster whose kube-apiserver would ask an issuer from the
// seed's own network.
func TestAttackIssuersOfOldAPIServers(t *testing.T) {
	for version, want := range map[string]string{
		"1.36.3": "", "1.34.0": "", "1.33.9": `has "1.33.9": update it first`, "": "need Kubernetes 1.34 or newer",
	} {
		g, config := everything()
		_, errs, err := Load(t.Context(), g.source(), config, Rules{KubernetesVersion: version},
			field.NewPath("kubeAPIServer"))
		if err != nil {
			t.Fatal(err)
		}
		refused := len(errs) == 1 && errs[0].Field == "kubeAPIServer.structuredAuthentication.configMapName" &&
			strings.Contains(errs[0].Detail, want)
		if want == "" && len(errs) > 0 || want != "" && !refused {
			t.Errorf("%q: errors = %v, want %q", version, errs, want)
		}
		g["authentication"] =
			"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\nanonymous: {enabled: false}\n"
		if _, errs, err := Load(t.Context(), g.source(), config, Rules{KubernetesVersion: version}, nil); err != nil ||
			len(errs) > 0 {
			t.Errorf("%q without issuers: %v, %v", version, errs, err)
		}
	}
}
