package federation

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/apis/fleetscheme"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// startCluster runs one more API server, which is no member yet.
func (w *world) startCluster(t *testing.T, name string) (*rest.Config, client.Client) {
	t.Helper()
	config, stop, err := w.servers.start(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if err := waitReady(config); err != nil {
		t.Fatal(err)
	}
	scheme := fleetscheme.Scheme()
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "namespace kube-system is there",
		func() error { return c.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &corev1.Namespace{}) })
	return config, c
}

func joinOptions(t *testing.T, name string) registration.JoinOptions {
	return registration.JoinOptions{
		Description: registration.Description{
			Name: name, Provider: "metal", Zones: []string{"a"}, Labels: map[string]string{"joined": name},
		},
		TokenLifetime: time.Hour, Timeout: environment.Patience, Tell: t.Logf,
	}
}

func (w *world) getCluster(name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	return cluster, w.fleet.Get(ctx, types.NamespacedName{Name: name}, cluster)
}

func TestJoinAndUnjoin(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	config, edge := w.startCluster(t, "edge")
	if err := registration.Join(ctx, w.fleet, edge, config, joinOptions(t, "edge")); err != nil {
		t.Fatal(err)
	}
	cluster, err := w.getCluster("edge")
	if err != nil {
		t.Fatal(err)
	}
	if cluster.Spec.ID == "" || cluster.Spec.Provider != "metal" || cluster.Labels["joined"] != "edge" {
		t.Errorf("got %+v", cluster)
	}
	t.Run("again, to renew what is known of it", func(t *testing.T) { w.joinsAgain(t, edge, config) })
	t.Run("not twice", func(t *testing.T) {
		err := registration.Join(ctx, w.fleet, edge, config, joinOptions(t, "edge-again"))
		if err == nil || !strings.Contains(err.Error(), `is a member already, as "edge"`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("not by a manifest either", func(t *testing.T) { w.refusesDuplicate(t, cluster) })
	t.Run("the token is renewed", func(t *testing.T) { w.renewsToken(t) })
	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, policyFor("edge"))[0], input(t, "000-karmada-nginx-3docs")[0])
	eventually(t, "the joined cluster gets objects", func() error { _, err := deployment(edge, namespace); return err })

	fleetID, err := registration.Identity(ctx, w.fleet)
	if err != nil {
		t.Fatal(err)
	}
	access := registration.AccessName(fleetID)
	account := &corev1.ServiceAccount{}
	if err := edge.Get(ctx, types.NamespacedName{Namespace: access, Name: access}, account); err != nil ||
		len(account.OwnerReferences) != 1 {
		t.Fatalf("got %+v, %v", account, err)
	}
	if err := registration.Unjoin(ctx, w.fleet, "edge", environment.Patience, t.Logf); err != nil {
		t.Fatal(err)
	}
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("edge"))
	if _, err := deployment(edge, namespace); wantGone(err) != nil {
		t.Errorf("what was applied there: %v", err)
	}
	if err := wantGone(edge.Get(ctx, client.ObjectKey{Name: access}, &rbacv1.ClusterRole{})); err != nil {
		t.Errorf("the fleet's access: %v", err)
	}
	if err := wantGone(w.fleet.Get(ctx, client.ObjectKey{Namespace: clusterv1alpha1.CredentialsNamespace, Name: "edge"},
		&corev1.Secret{})); err != nil {
		t.Errorf("the credentials: %v", err)
	}
}

// joinsAgain does so with a member whose status tells all that the fleet sees in it.
func (w *world) joinsAgain(t *testing.T, edge client.Client, config *rest.Config) {
	eventually(t, "the room of the member is known", func() error {
		cluster, err := w.getCluster("edge")
		if err == nil && (cluster.Status.ResourceSummary == nil ||
			len(cluster.Status.ResourceSummary.AllocatableModelings) == 0) {
			err = errors.New("no modelings")
		}
		return err
	})
	options := joinOptions(t, "edge")
	options.Region = "north"
	if err := registration.Join(ctx, w.fleet, edge, config, options); err != nil {
		t.Fatal(err)
	}
	if cluster, err := w.getCluster("edge"); err != nil || cluster.Spec.Region != "north" ||
		cluster.Spec.Provider != "metal" {
		t.Errorf("got %+v, %v", cluster.Spec, err)
	}
}

func policyFor(member string) string {
	return fmt.Sprintf(`
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: nginx}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: nginx}]
  placement: {clusterAffinity: {clusterNames: [%s]}}
`, member)
}

func (w *world) refusesDuplicate(t *testing.T, original *clusterv1alpha1.Cluster) {
	twin := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "twin"}, Spec: original.Spec}
	twin.Spec.ID, twin.Spec.Taints = "", nil
	if err := w.fleet.Create(ctx, twin); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the twin is refused", func() error {
		found, err := w.getCluster("twin")
		if err != nil {
			return err
		}
		ready := meta.FindStatusCondition(found.Status.Conditions, clusterv1alpha1.ConditionReady)
		if ready == nil || ready.Reason != "DuplicateMember" || !strings.Contains(ready.Message, "member edge") {
			return fmt.Errorf("got %+v", ready)
		}
		return nil
	})
	secret := types.NamespacedName{Namespace: clusterv1alpha1.CredentialsNamespace, Name: "edge"}
	remove(t, w.fleet, twin)
	eventually(t, "the twin is gone", func() error { _, err := w.getCluster("twin"); return wantGone(err) })
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("twin"))
	if err := w.fleet.Get(ctx, secret, &corev1.Secret{}); err != nil {
		t.Errorf("the credentials of the original stay: %v", err)
	}
}

func (w *world) renewsToken(t *testing.T) {
	secret := &corev1.Secret{}
	key := types.NamespacedName{Namespace: clusterv1alpha1.CredentialsNamespace, Name: "edge"}
	if err := w.fleet.Get(ctx, key, secret); err != nil {
		t.Fatal(err)
	}
	token := string(secret.Data[clusterv1alpha1.SecretToken])
	before := secret.DeepCopy()
	secret.Annotations[registration.RenewAnnotation] = time.Now().Add(-time.Minute).UTC().Format(time.RFC3339)
	if err := w.fleet.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "there is another token", func() error {
		if err := w.fleet.Get(ctx, key, secret); err != nil {
			return err
		}
		if string(secret.Data[clusterv1alpha1.SecretToken]) == token {
			return errors.New("the same token")
		}
		return nil
	})
}

// A cluster that the fleet cannot reach is registered, and the user is told what to look at.
func TestJoinTellsWhatFails(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	config, edge := w.startCluster(t, "faraway")
	options := joinOptions(t, "faraway")
	options.Endpoint, options.Timeout = "https://127.0.0.1:1", 3*time.Second
	// A fleet that has much to do has not looked at it within three seconds, and says so.
	eventually(t, "the user is told", func() error {
		err := registration.Join(ctx, w.fleet, edge, config, options)
		for _, want := range []string{
			"is not ready after 3s", "does not answer", "--endpoint", "trellisctl unjoin faraway",
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("got %w, want %s", err, want)
			}
		}
		return nil
	})
	options.Endpoint, options.Timeout = "", environment.Patience
	if err := registration.Join(context.Background(), w.fleet, edge, config, options); err != nil {
		t.Fatalf("joining it again corrects the address: %v", err)
	}
	if err := registration.Unjoin(ctx, w.fleet, "faraway", environment.Patience, t.Logf); err != nil {
		t.Fatal(err)
	}
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("faraway"))
}
