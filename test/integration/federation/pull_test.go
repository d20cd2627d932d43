package federation

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

func TestPullMember(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	p := w.invite(t, "pulled", registration.Allowance{})
	w.ready(t, p.name, metav1.ConditionFalse, "WaitingForAcceptance")
	t.Run("an invitation is good for asking only", func(t *testing.T) { w.invitationIsPoor(t, p) })

	kill, _ := p.start(t)
	before := p.waiting(t)
	// An agent that a subtest starts goes on after it.
	restart := func() {
		kill()
		kill, _ = p.start(t)
	}
	restart()
	if after := p.waiting(t); len(after) != 1 || after[0].Fingerprint != before[0].Fingerprint || after[0].ID == "" ||
		after[0].Version == "" {
		t.Errorf("an agent that starts again asks with the same key: got %+v, before %+v", after, before)
	}
	if _, err := registration.Choose(before, nil, p.name, "0000000000"); err == nil {
		t.Error("a key that is not the agent's is not accepted")
	}
	p.accept(t)
	cluster := w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	if cluster.Status.KubernetesVersion == "" || len(cluster.Status.APIEnablements) == 0 ||
		cluster.Spec.Provider != "metal" {
		t.Errorf("got %+v", cluster)
	}

	namespace := w.newNamespace(t)
	apply(t, w.fleet, namespace, parse(t, policyFor(p.name))[0], input(t, "000-karmada-nginx-3docs")[0])
	eventually(t, "the agent applies objects", func() error { _, err := deployment(p.member, namespace); return err })
	t.Run("status returns", func(t *testing.T) { w.statusReturns(t, p, namespace) })
	t.Run("an agent sees its own member only", func(t *testing.T) { w.agentIsPoor(t, p, namespace) })
	t.Run("a silent agent", func(t *testing.T) {
		kill()
		cluster := w.ready(t, p.name, metav1.ConditionUnknown, "AgentNotHeard")
		eventually(t, "it is tainted", func() (err error) {
			if cluster, err = w.getCluster(p.name); err == nil &&
				!slices.ContainsFunc(cluster.Spec.Taints,
					func(t corev1.Taint) bool { return t.Key == clusterv1alpha1.TaintUnreachable }) {
				err = fmt.Errorf("taints %v", cluster.Spec.Taints)
			}
			return err
		})
		w.scale(t, namespace, 5)
		restart()
		w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
		p.replicas(t, namespace, 5)
	})
	t.Run("an agent that ends at any point", func(t *testing.T) {
		for i := range int64(6) {
			kill()
			w.scale(t, namespace, 6+i)
			restart()
			time.Sleep(time.Duration(i) * 60 * time.Millisecond)
		}
		p.replicas(t, namespace, 11)
	})
	t.Run("an agent that lies", func(t *testing.T) { w.liesAreRefused(t, p) })
	t.Run("certificates are renewed", func(t *testing.T) {
		kill()
		w.renewsCertificate(t, p, namespace)
	})
	_, ended := p.start(t)
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	t.Run("objects are removed", func(t *testing.T) {
		object, err := deployment(w.fleet, namespace)
		if err != nil {
			t.Fatal(err)
		}
		remove(t, w.fleet, object)
		eventually(t, "it is gone", func() error { _, err := deployment(p.member, namespace); return wantGone(err) })
		apply(t, w.fleet, namespace, input(t, "000-karmada-nginx-3docs")[0])
		eventually(t, "it is back", func() error { _, err := deployment(p.member, namespace); return err })
	})
	w.unjoins(t, p, namespace, ended)
}

func (w *world) scale(t *testing.T, namespace string, replicas int64) {
	t.Helper()
	object, err := deployment(w.fleet, namespace)
	if err != nil {
		t.Fatal(err)
	}
	before := object.DeepCopy()
	if err := unstructured.SetNestedField(object.Object, replicas, "spec", "replicas"); err != nil {
		t.Fatal(err)
	}
	if err := w.fleet.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
}

func (p *pulled) replicas(t *testing.T, namespace string, want int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the member has %d replicas", want), func() error {
		object, err := deployment(p.member, namespace)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas"); got != want {
			return fmt.Errorf("%d replicas", got)
		}
		return nil
	})
}

func (w *world) statusReturns(t *testing.T, p *pulled, namespace string) {
	object, err := deployment(p.member, namespace)
	if err != nil {
		t.Fatal(err)
	}
	replicas, _, _ := unstructured.NestedInt64(object.Object, "spec", "replicas")
	before := object.DeepCopy()
	object.Object["status"] = map[string]any{
		"observedGeneration": object.GetGeneration(), "replicas": replicas, "updatedReplicas": replicas,
		"readyReplicas": replicas, "availableReplicas": replicas,
	}
	if err := p.member.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the template shows it", func() error {
		template, err := deployment(w.fleet, namespace)
		if err != nil {
			return err
		}
		if got, _, _ := unstructured.NestedInt64(template.Object, "status", "readyReplicas"); got != replicas {
			return fmt.Errorf("%d ready replicas, want %d", got, replicas)
		}
		return nil
	})
}

// renewsCertificate has an agent renew its certificate once, and go on with the new one.
func (w *world) renewsCertificate(t *testing.T, p *pulled, namespace string) {
	credentials := func() []byte {
		secret := &corev1.Secret{}
		if err := p.member.Get(ctx, types.NamespacedName{Namespace: p.invitation.Access, Name: "credentials"},
			secret); err != nil {
			t.Fatal(err)
		}
		return secret.Data["tls.crt"]
	}
	old := credentials()
	options := p.options
	first := ""
	p.options.RenewAt = func(leaf *x509.Certificate) time.Time {
		if first == "" {
			first = leaf.SerialNumber.String()
		}
		if first == leaf.SerialNumber.String() {
			return time.Now()
		}
		return leaf.NotAfter
	}
	kill, _ := p.start(t)
	eventually(t, "the certificate is another", func() error {
		if string(credentials()) == string(old) {
			return errors.New("the same")
		}
		return nil
	})
	w.scale(t, namespace, 3)
	p.replicas(t, namespace, 3)
	kill()
	p.options = options
}

func (w *world) unjoins(t *testing.T, p *pulled, namespace string, ended <-chan error) {
	if err := registration.Unjoin(ctx, w.fleet, p.name, environment.Patience, t.Logf); err != nil {
		t.Fatal(err)
	}
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(p.name))
	if _, err := deployment(p.member, namespace); wantGone(err) != nil {
		t.Errorf("what was applied there: %v", err)
	}
	p.ends(t, ended)
	// Nothing collects garbage here: what goes with the namespace is owned by it.
	left := &corev1.Namespace{}
	if err := p.member.Get(ctx, client.ObjectKey{Name: p.invitation.Access}, left); err != nil ||
		left.DeletionTimestamp == nil {
		t.Errorf("the agent's namespace stays (%v)", err)
	}
	for _, right := range []client.Object{&rbacv1.ClusterRole{}, &rbacv1.ClusterRoleBinding{}} {
		if err := p.member.Get(ctx, client.ObjectKey{Name: p.invitation.Access}, right); err != nil {
			t.Fatal(err)
		}
		if owners := right.GetOwnerReferences(); len(owners) != 1 || owners[0].UID != left.UID {
			t.Errorf("%T of the agent is owned by %v, want its namespace", right, owners)
		}
	}
	if !p.options.Allowance.Bounded() {
		if err := p.impersonatorGoes(p.invitation.Access, left.UID); err != nil {
			t.Error(err)
		}
	}
	eventually(t, "the agent's rights in the fleet are gone", func() error {
		return wantGone(w.fleet.Get(ctx, client.ObjectKey{Name: "trellis.garden:federation:agent:" + p.name},
			&rbacv1.ClusterRole{}))
	})
}

// The owner of a member says what the fleet may do there, and the agent has no rights beyond.
func TestPullMemberAllows(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	allowed := w.newNamespace(t)
	p := w.invite(t, "limited", registration.Allowance{
		Namespaces: []string{allowed}, Kinds: []string{"Deployment.apps"},
	})
	_, ended := p.start(t)
	p.accept(t)
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	apply(t, w.fleet, allowed, parse(t, policyFor(p.name))[0], input(t, "000-karmada-nginx-3docs")[0])
	eventually(t, "the agent applies what is allowed",
		func() error { _, err := deployment(p.member, allowed); return err })
	other := w.newNamespace(t)
	apply(t, w.fleet, other, parse(t, policyFor(p.name))[0], input(t, "000-karmada-nginx-3docs")[0])
	eventually(t, "the binding tells what is not allowed", func() error {
		b, err := w.bindingOf(other)
		if err != nil {
			return err
		}
		for _, item := range b.Status.AggregatedStatus {
			if strings.Contains(item.AppliedMessage, "does not allow") &&
				strings.Contains(item.AppliedMessage, "namespace "+other) {
				return nil
			}
		}
		return fmt.Errorf("status %+v", b.Status.AggregatedStatus)
	})
	if _, err := deployment(p.member, other); wantGone(err) != nil {
		t.Errorf("got %v", err)
	}
	t.Run("who takes the agent over is nobody else", p.staysItself)
	w.unjoins(t, p, allowed, ended)
}

// staysItself has an agent with bounds try to be another account of its member, with the rights that it has there.
func (p *pulled) staysItself(t *testing.T) {
	agent, err := client.New(p.options.Member, client.Options{Scheme: p.member.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	namespace := p.invitation.Access
	for _, name := range []string{"impersonator", "default", "agent"} {
		account := types.NamespacedName{Namespace: namespace, Name: name}
		_, err := registration.RequestToken(ctx, agent, account, time.Hour)
		denied(t, "a token of "+name, err)
	}
	denied(t, "a Secret with a token", agent.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: "token", Annotations: map[string]string{"kubernetes.io/service-account.name": "default"},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}))
	denied(t, "a pod", agent.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pod"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}))
	for _, path := range []string{
		"/api/v1/namespaces/kube-system/pods/p/exec?command=id", "/api/v1/nodes/n/proxy/run",
		"/api/v1/namespaces/kube-system/services/s/proxy/",
	} {
		_, err := answer(p.options.Member, http.MethodGet, path)
		denied(t, path, err)
	}
	other := rest.CopyConfig(p.options.Member)
	other.Impersonate = rest.ImpersonationConfig{UserName: "somebody", Groups: []string{"system:masters"}}
	as, err := client.New(other, client.Options{Scheme: p.member.Scheme(), Mapper: p.member.RESTMapper()})
	if err != nil {
		t.Fatal(err)
	}
	denied(t, "somebody else", as.List(ctx, &corev1.NamespaceList{}))
}

// An agent whose connection breaks off just when its member leaves hears of it when it is back, as the fleet keeps its
// rights until then.
func TestAgentHearsLateThatItsMemberLeaves(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	p := w.invite(t, "deaf", registration.Allowance{})
	way := &line{}
	if err := way.connect(p.fleet); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		way.set(true)
		_ = way.listener.Close()
	})
	p.apply(t, registration.Allowance{})
	_, ended := p.start(t)
	p.accept(t)
	cluster := w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
	way.set(true)
	if err := w.fleet.Delete(ctx, cluster); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fleet has got as far as it does without the agent", func() error {
		cluster, err := w.getCluster(p.name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err == nil && meta.FindStatusCondition(cluster.Status.Conditions,
			clusterv1alpha1.ConditionAgentLeaving) == nil {
			err = errors.New("the agent is not waited for")
		}
		return err
	})
	way.set(false)
	p.ends(t, ended)
	if err := registration.Unjoin(ctx, w.fleet, p.name, environment.Patience, t.Logf); err == nil {
		t.Error("the member is still there after its agent has ended")
	}
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(p.name))
}

// ends waits until the agent has removed itself.
func (p *pulled) ends(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the agent does not end")
	}
}

// A member whose agent is gone for good can leave all the same.
func TestPullMemberWithoutAgentLeaves(t *testing.T) {
	w := newWorld(t)
	w.startFederation(t)
	p := w.invite(t, "vanished", registration.Allowance{})
	w.waitForNamespaceOf(t, p.name)
	if err := registration.Unjoin(ctx, w.fleet, p.name, environment.Patience, t.Logf); err != nil {
		t.Fatal(err)
	}
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(p.name))
	_, err := registration.Register(ctx, w.fleet, w.fleetConfig,
		registration.RegisterOptions{Description: registration.Description{Name: "member1"}, TokenLifetime: time.Hour})
	if err == nil || !strings.Contains(err.Error(), "trellisctl unjoin member1") {
		t.Errorf("a name that is taken: got %v", err)
	}
}
