package care

import (
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func TestWebhookConstraints(t *testing.T) {
	rule := func(group, resource string,
		operations ...admissionregistrationv1.OperationType) admissionregistrationv1.RuleWithOperations {
		return admissionregistrationv1.RuleWithOperations{Operations: operations, Rule: admissionregistrationv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource},
		}}
	}
	excluding := func(key string, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: key, Operator: metav1.LabelSelectorOpNotIn, Values: values},
			},
		}
	}
	namespaced := func(w *admissionregistrationv1.ValidatingWebhook, scope admissionregistrationv1.ScopeType) {
		w.Rules[0].Scope = &scope
	}
	for _, test := range []struct {
		name   string
		rule   admissionregistrationv1.RuleWithOperations
		change func(*admissionregistrationv1.ValidatingWebhook)
		want   string
	}{
		{"pods", rule("", "pods", "CREATE"), nil, "concerns pods of the system"},
		{"nodes", rule("", "nodes", "UPDATE"), nil, "concerns nodes of the system"},
		{"everything", rule("*", "*/*", "*"), nil, "concerns nodes"},
		{"deletion of pods", rule("", "pods", "DELETE"), nil, ""},
		{"others' resources", rule("example.com", "things", "*"), nil, ""},
		{"status of others", rule("example.com", "*/status", "*"), nil, ""},
		{"leases", rule("coordination.k8s.io", "leases", "*"), nil, "concerns leases"},
		{"leases but not the kubelets'", rule("coordination.k8s.io", "leases", "*"),
			func(w *admissionregistrationv1.ValidatingWebhook) {
				w.NamespaceSelector = excluding("kubernetes.io/metadata.name", "kube-system", "kube-node-lease")
			}, ""},
		{"pods of others", rule("", "pods", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.NamespaceSelector = excluding("kubernetes.io/metadata.name", "kube-system")
		}, ""},
		{"pods of unmarked namespaces", rule("", "pods", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.NamespaceSelector = excluding("mesh", "off")
		}, ""},
		{"nodes, whatever the namespace", rule("", "nodes", "CREATE"),
			func(w *admissionregistrationv1.ValidatingWebhook) {
				w.NamespaceSelector = excluding("kubernetes.io/metadata.name", "kube-system")
			}, "concerns nodes"},
		{"objects of others", rule("", "pods", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.ObjectSelector = excluding(gardencorev1beta1.ShootNoCleanup, "true")
		}, ""},
		{"ignored failure", rule("", "pods", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy = new(admissionregistrationv1.Ignore)
		}, ""},
		{"ignored failure, but slow", rule("", "pods", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			w.FailurePolicy, w.TimeoutSeconds = new(admissionregistrationv1.Ignore), new(int32(30))
		}, "timeoutSeconds 30"},
		{"nodes, of namespaces only", rule("", "nodes", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			namespaced(w, admissionregistrationv1.NamespacedScope)
		}, ""},
		{"pods, of the cluster only", rule("", "pods", "CREATE"), func(w *admissionregistrationv1.ValidatingWebhook) {
			namespaced(w, admissionregistrationv1.ClusterScope)
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := admissionregistrationv1.ValidatingWebhook{
				Name: "w.example.com", Rules: []admissionregistrationv1.RuleWithOperations{test.rule},
			}
			if test.change != nil {
				test.change(&w)
			}
			system := map[string]string{"kubernetes.io/metadata.name": "kube-system", "mesh": "off"}
			clientset := kubernetesfake.NewClientset(
				&admissionregistrationv1.ValidatingWebhookConfiguration{
					ObjectMeta: metav1.ObjectMeta{Name: "c"}, Webhooks: []admissionregistrationv1.ValidatingWebhook{w},
				},
				&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system", Labels: system}},
				&corev1.Namespace{
					ObjectMeta: metav1.ObjectMeta{
						Name: "kube-node-lease", Labels: map[string]string{
							"kubernetes.io/metadata.name": "kube-node-lease",
						},
					},
				},
			)
			found := webhookConstraints(t.Context(), clientset)
			if len(found) != 2 {
				t.Fatalf("got %+v", found)
			}
			for _, constraint := range found {
				want := gardencorev1beta1.ConditionTrue
				if test.want != "" {
					want = gardencorev1beta1.ConditionFalse
				}
				if constraint.Status != want || !strings.Contains(constraint.Message, test.want) {
					t.Errorf("got %+v, want %q", constraint, test.want)
				}
			}
		})
	}
}
