package quotas

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
)

func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, item := range strings.Fields(text) {
		name, value, _ := strings.Cut(item, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(value)
	}
	return list
}

func shopQuota() *policyv1alpha1.FederatedResourceQuota {
	return &policyv1alpha1.FederatedResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "limits"},
		Spec: policyv1alpha1.FederatedResourceQuotaSpec{
			Overall: amounts("cpu=10 requests.memory=20Gi services=4"),
			StaticAssignments: []policyv1alpha1.StaticClusterAssignment{
				{ClusterName: "m1", Hard: amounts("cpu=4 services=1")}, {ClusterName: "m2", Hard: amounts("cpu=6")},
				{ClusterName: "gone", Hard: amounts("cpu=1")},
			},
		},
	}
}

func report(work *workv1alpha1.Work, status string) {
	work.Status.ManifestStatuses = []workv1alpha1.ManifestStatus{{Status: &runtime.RawExtension{Raw: []byte(status)}}}
}

func TestQuotaInMembersAndStatus(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		policyv1alpha1.AddToScheme, clusterv1alpha1.AddToScheme, workv1alpha1.AddToScheme, workv1alpha2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	nginx := &workv1alpha2.ResourceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nginx-deployment"}}
	nginx.Spec.ReplicaRequirements = &workv1alpha2.ReplicaRequirements{ResourceRequest: amounts("cpu=500m memory=1Gi")}
	nginx.Spec.Clusters = []workv1alpha2.TargetCluster{{Name: "m1", Replicas: 2}, {Name: "m2", Replicas: 4}}
	elsewhere := nginx.DeepCopy()
	elsewhere.Namespace = "other"
	c := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&policyv1alpha1.FederatedResourceQuota{}).WithObjects(shopQuota(), nginx, elsewhere,
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m1"}},
		&clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "m2"}}).Build()
	q := &quotas{client: c}
	key := types.NamespacedName{Namespace: "shop", Name: "limits"}
	works := func() []workv1alpha1.Work {
		t.Helper()
		if _, err := q.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
		var list workv1alpha1.WorkList
		if err := c.List(t.Context(), &list); err != nil {
			t.Fatal(err)
		}
		return list.Items
	}
	made := works()
	if len(made) != 2 || made[0].Namespace != "karmada-es-m1" ||
		!strings.Contains(string(made[0].Spec.Workload.Manifests[0].Raw), `"hard":{"cpu":"4","services":"1"}`) {
		t.Fatalf("Works %+v", made)
	}
	report(&made[0], `{"hard":{"services":"1"},"used":{"services":"1","cpu":"3"}}`)
	if err := c.Update(t.Context(), &made[0]); err != nil {
		t.Fatal(err)
	}
	works()
	federated := &policyv1alpha1.FederatedResourceQuota{}
	if err := c.Get(t.Context(), key, federated); err != nil {
		t.Fatal(err)
	}
	used := federated.Status.OverallUsed
	if used.Cpu().String() != "3" || used.Name("requests.memory", resource.BinarySI).String() != "6Gi" ||
		used.Name("services", resource.DecimalSI).String() != "1" {
		t.Errorf("used %v", used)
	}
	if a := federated.Status.AggregatedStatus; len(a) != 1 || a[0].ClusterName != "m1" ||
		a[0].Used.Cpu().String() != "3" {
		t.Errorf("aggregated %+v", a)
	}

	federated.Spec.StaticAssignments = federated.Spec.StaticAssignments[:1]
	federated.Spec.StaticAssignments[0].Hard = amounts("cpu=5")
	if err := c.Update(t.Context(), federated); err != nil {
		t.Fatal(err)
	}
	if made := works(); len(made) != 2 || made[1].DeletionTimestamp == nil ||
		!strings.Contains(string(made[0].Spec.Workload.Manifests[0].Raw), `"cpu":"5"`) {
		t.Errorf("Works %+v", made)
	}
	if err := c.Delete(t.Context(), federated); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	for _, work := range works() {
		if work.DeletionTimestamp == nil {
			t.Errorf("Work %s stays", work.Namespace)
		}
	}
}
