package federation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/test/simulated"
)

// smallMember runs a pod for each Deployment that it is told to run, and remembers all that it ever was.
type smallMember struct {
	*simulated.Server
	nodes, perNode int

	mu sync.Mutex
	// ever are the Deployments that have been there; pods are the nodes of those that are.
	ever map[string]bool
	pods map[string]int
	most int
}

func newSmallMember(nodes, perNode int) *smallMember {
	m := &smallMember{
		Server: simulated.New(), nodes: nodes, perNode: perNode, ever: map[string]bool{}, pods: map[string]int{},
	}
	m.Changed, m.Removed = m.changed, m.removed
	amounts := map[string]any{"cpu": fmt.Sprint(perNode), "memory": "64Gi", "pods": "500"}
	for node := range nodes {
		m.Put("nodes", "", fmt.Sprintf("node-%d", node), map[string]any{
			"spec": map[string]any{},
			"status": map[string]any{
				"allocatable": amounts, "capacity": amounts,
				"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
			},
		})
	}
	return m
}

func (m *smallMember) changed(resource, namespace, name string, value map[string]any) {
	if resource != "deployments" {
		return
	}
	metadata, _ := value["metadata"].(map[string]any)
	metadata["generation"] = 1
	value["status"] = map[string]any{
		"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.pods[name]; known {
		return
	}
	m.ever[name] = true
	m.pods[name] = m.freeNode()
	m.most = max(m.most, len(m.pods))
	pod := map[string]any{
		"spec": map[string]any{
			"nodeName": fmt.Sprintf("node-%d", m.pods[name]),
			"containers": []any{
				map[string]any{
					"name": "web", "image": "nginx",
					"resources": map[string]any{"requests": map[string]any{"cpu": "1"}},
				},
			},
		},
		"status": map[string]any{"phase": "Running"},
	}
	go m.Put("pods", namespace, name, pod)
}

// freeNode is the one with the fewest pods.
func (m *smallMember) freeNode() int {
	count := make([]int, m.nodes)
	for _, node := range m.pods {
		count[node]++
	}
	return slices.Index(count, slices.Min(count))
}

func (m *smallMember) removed(resource, namespace, name string) {
	if resource != "deployments" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, name)
	go m.Delete("pods", namespace, name)
}

// joinSimulated makes a simulated member one of the fleet until the test ends.
func (w *world) joinSimulated(t *testing.T, name string, server *simulated.Server) {
	t.Helper()
	server.Put("namespaces", "", metav1.NamespaceSystem, map[string]any{})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: clusterv1alpha1.CredentialsNamespace},
		Data:       map[string][]byte{clusterv1alpha1.SecretToken: []byte("none")},
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: clusterv1alpha1.ClusterSpec{
			SyncMode: clusterv1alpha1.Push, APIEndpoint: server.URL, InsecureSkipTLSVerification: true,
			SecretRef: &clusterv1alpha1.LocalSecretReference{Namespace: secret.Namespace, Name: secret.Name},
		},
	}
	for _, object := range []client.Object{secret, cluster} {
		if err := w.fleet.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		remove(t, w.fleet, cluster)
		eventually(t, name+" has left the fleet", func() error {
			return wantGone(w.fleet.Get(ctx, types.NamespacedName{Name: name}, &clusterv1alpha1.Cluster{}))
		})
		remove(t, w.fleet, secret)
		w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(name))
	})
	eventually(t, name+" is ready and its nodes are known", func() error {
		if err := w.fleet.Get(ctx, types.NamespacedName{Name: name}, cluster); err != nil {
			return err
		}
		if summary := cluster.Status.ResourceSummary; !meta.IsStatusConditionTrue(cluster.Status.Conditions,
			clusterv1alpha1.ConditionReady) || summary == nil || summary.Allocatable.Cpu().IsZero() {
			return fmt.Errorf("conditions %+v, resources %+v", cluster.Status.Conditions, summary)
		}
		return nil
	})
}

// crowd is how many want what a few can have.
const (
	crowd = 1000
	room  = 40
)

// TestCrowdAtTheLastCluster lets a thousand Deployments want the one cluster that has room for forty. The model: never
// more than forty are there, forty are in the end, all others know why not; and when some go, as many others come.
func TestCrowdAtTheLastCluster(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	server := newSmallMember(4, room/4)
	t.Cleanup(server.Close)
	w.joinSimulated(t, "last", server.Server)
	namespace := w.newNamespace(t)
	policy := &policyv1alpha1.PropagationPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "crowd"},
		Spec: policyv1alpha1.PropagationSpec{
			ResourceSelectors: []policyv1alpha1.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement:         aggregatedIn("last"),
		},
	}
	if err := w.fleet.Create(ctx, policy); err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < crowd; i += 8 {
				if err := w.fleet.Create(ctx, oneCore(namespace, fmt.Sprintf("one-of-many-%d", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	placed := w.theLuckyOnes(t, namespace, crowd)
	t.Logf("placed: %s", strings.Join(placed, " "))
	leaving := placed[:5]
	for _, name := range leaving {
		remove(t, w.fleet, oneCore(namespace, name))
	}
	for _, name := range w.theLuckyOnes(t, namespace, crowd-len(leaving)) {
		for _, gone := range leaving {
			if name == gone {
				t.Errorf("%s is placed and was removed", name)
			}
		}
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.most > room {
		t.Errorf("%d Deployments were in the cluster at a time, which has room for %d", server.most, room)
	}
	if len(server.ever) != room+len(leaving) {
		t.Errorf("%d Deployments have ever been in the cluster, want %d", len(server.ever), room+len(leaving))
	}
}

func oneCore(namespace, name string) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	requests := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{
						{Name: "web", Image: "nginx", Resources: corev1.ResourceRequirements{Requests: requests}},
					},
				},
			},
		},
	}
}

// theLuckyOnes waits until as many as have room are placed and all others know why they are not.
func (w *world) theLuckyOnes(t *testing.T, namespace string, all int) (placed []string) {
	t.Helper()
	eventuallyWithin(t, fourMinutes, fmt.Sprintf("%d of %d are placed", room, all), func() error {
		var list workv1alpha2.ResourceBindingList
		if err := w.fleet.List(ctx, &list, client.InNamespace(namespace)); err != nil && !apierrors.IsTimeout(err) {
			return err
		}
		placed = nil
		waiting := 0
		for _, b := range list.Items {
			scheduled := meta.FindStatusCondition(b.Status.Conditions, workv1alpha2.ConditionScheduled)
			switch {
			case b.DeletionTimestamp != nil:
			case len(b.Spec.Clusters) > 0:
				placed = append(placed, b.Spec.Resource.Name)
			case scheduled != nil && scheduled.Reason == workv1alpha2.ReasonUnschedulable &&
				strings.Contains(scheduled.Message, "room for 0 of 1 replicas"):
				waiting++
			}
		}
		if len(placed) > room {
			t.Fatalf("%d are placed where there is room for %d", len(placed), room)
		}
		if len(placed) != room || waiting != all-room {
			return fmt.Errorf("%d are placed, %d know why not", len(placed), waiting)
		}
		return nil
	})
	return placed
}

// aggregatedIn packs replicas into one cluster, as far as there is room.
func aggregatedIn(cluster string) policyv1alpha1.Placement {
	return policyv1alpha1.Placement{
		ClusterAffinity: &policyv1alpha1.ClusterAffinity{ClusterNames: []string{cluster}},
		ReplicaScheduling: &policyv1alpha1.ReplicaSchedulingStrategy{
			ReplicaSchedulingType:     policyv1alpha1.ReplicaSchedulingTypeDivided,
			ReplicaDivisionPreference: policyv1alpha1.ReplicaDivisionPreferenceAggregated,
		},
	}
}
