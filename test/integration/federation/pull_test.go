package federation

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	workv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/federation/agent"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// pulled is a member that is served by an agent.
type pulled struct {
	world      *world
	name       string
	invitation *registration.Invitation
	// fleet is how the agent reaches it.
	fleet   *rest.Config
	options agent.Options
	member  client.Client
}

// invite registers a cluster and applies the agent's manifest there; no agent runs yet. The agent will have the rights
// that the manifest gives it, and knows the fleet by its certificate.
func (w *world) invite(t *testing.T, name string, allowance registration.Allowance) *pulled {
	t.Helper()
	w.servers.startControllers(t, w.fleetConfig, "certificatesigningrequest-signing-controller",
		"garbage-collector-controller")
	w.startApprover(t)
	config, member := w.startCluster(t, name)
	p := &pulled{world: w, name: name, member: member, fleet: w.pinnedFleet(t)}
	p.apply(t, allowance)
	p.configure(t, config, allowance)
	return p
}

// apply another manifest of the agent in the member.
func (p *pulled) apply(t *testing.T, allowance registration.Allowance) {
	t.Helper()
	var err error
	description := registration.Description{
		Name: p.name, Provider: "metal", Labels: map[string]string{"pulled": "true"},
	}
	if p.invitation, err = registration.Register(ctx, p.world.fleet, p.fleet,
		registration.RegisterOptions{Description: description, TokenLifetime: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := registration.ApplyManifest(ctx, p.member,
		p.invitation.Manifest(registration.AgentOptions{
			Image: "federation:test", Allowance: allowance, ServeAPI: !allowance.Bounded(),
		})); err != nil {
		t.Fatal(err)
	}
}

// pinnedFleet leads to the fleet, which is known by its certificate.
func (w *world) pinnedFleet(t *testing.T) *rest.Config {
	t.Helper()
	authority, err := os.ReadFile(w.servers.file("fleet/apiserver.crt"))
	if err != nil {
		t.Fatal(err)
	}
	pinned := rest.CopyConfig(w.fleetConfig)
	pinned.TLSClientConfig = rest.TLSClientConfig{CAData: authority}
	return pinned
}

// configure gives the agent the rights of its service account in the member, and the pace of tests.
func (p *pulled) configure(t *testing.T, config *rest.Config, allowance registration.Allowance) {
	t.Helper()
	token, err := registration.RequestToken(ctx, p.member,
		types.NamespacedName{Namespace: p.invitation.Access, Name: "agent"}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	p.options = agent.DefaultOptions()
	p.options.Member = &rest.Config{
		Host: config.Host, BearerToken: token.Token, TLSClientConfig: config.TLSClientConfig,
	}
	p.options.Namespace, p.options.Allowance = p.invitation.Access, allowance
	p.options.MetricsAddress, p.options.HealthAddress = "0", "0"
	p.options.LeaseDuration, p.options.AuthorityInterval, p.options.Retry = time.Second, 200*time.Millisecond,
		100*time.Millisecond
	p.options.Clusters.ProbeInterval, p.options.Clusters.SurveyInterval = 200*time.Millisecond, time.Second
}

// start runs the agent until the test ends or it is killed. The channel tells how it ended.
func (p *pulled) start(t *testing.T) (kill func(), ended <-chan error) {
	t.Helper()
	running, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	stopped := make(chan struct{})
	go func() {
		done <- agent.Run(running, p.options)
		close(stopped)
	}()
	kill = func() {
		cancel()
		<-stopped
	}
	t.Cleanup(kill)
	return kill, done
}

func (p *pulled) waiting(t *testing.T) []registration.Candidate {
	t.Helper()
	var candidates []registration.Candidate
	eventually(t, "the agent asks", func() (err error) {
		if candidates, err = registration.Candidates(ctx, p.world.fleet, p.name); err == nil && len(candidates) == 0 {
			err = errors.New("nobody waits")
		}
		return err
	})
	return candidates
}

func (p *pulled) accept(t *testing.T) {
	t.Helper()
	chosen, err := registration.Choose(p.waiting(t), nil, p.name, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Accept(ctx, p.world.fleet, chosen); err != nil {
		t.Fatal(err)
	}
	// Who did not hear of it does it again.
	accepted, err := registration.Accepted(ctx, p.world.fleet, p.name)
	if err != nil {
		t.Fatal(err)
	}
	again, err := registration.Choose(nil, accepted, p.name, chosen.Fingerprint)
	if err != nil {
		t.Fatal(err)
	}
	if err := registration.Accept(ctx, p.world.fleet, again); err != nil {
		t.Error(err)
	}
}

// asAgent is a client with the certificate that the agent has.
func (p *pulled) asAgent(t *testing.T) client.Client {
	t.Helper()
	secret := &corev1.Secret{}
	if err := p.member.Get(ctx, types.NamespacedName{Namespace: p.invitation.Access, Name: "credentials"},
		secret); err != nil {
		t.Fatal(err)
	}
	config := &rest.Config{
		Host: p.world.fleetConfig.Host,
		TLSClientConfig: rest.TLSClientConfig{
			Insecure: true, CertData: secret.Data["tls.crt"], KeyData: secret.Data["tls.key"],
		},
	}
	c, err := client.New(config, client.Options{Scheme: p.world.fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

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

// denied checks that nothing of it is allowed.
func denied(t *testing.T, what string, err error) {
	t.Helper()
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
		t.Errorf("%s: got %v, want it to be refused", what, err)
	}
}

func (w *world) invitationIsPoor(t *testing.T, p *pulled) {
	config, err := clientcmd.RESTConfigFromKubeConfig(p.invitation.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	invited, err := client.New(config, client.Options{Scheme: w.fleet.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	denied(t, "its Works", invited.List(ctx, &workv1alpha1.WorkList{},
		client.InNamespace(clusterv1alpha1.ExecutionNamespace(p.name))))
	denied(t, "Clusters", invited.List(ctx, &clusterv1alpha1.ClusterList{}))
	denied(t, "credentials", invited.List(ctx, &corev1.SecretList{},
		client.InNamespace(clusterv1alpha1.CredentialsNamespace)))
	denied(t, "requests of others", invited.List(ctx, &certificatesv1.CertificateSigningRequestList{}))
}

func (w *world) agentIsPoor(t *testing.T, p *pulled, namespace string) {
	own := p.asAgent(t)
	var works workv1alpha1.WorkList
	if err := own.List(ctx, &works, client.InNamespace(clusterv1alpha1.ExecutionNamespace(p.name))); err != nil ||
		len(works.Items) == 0 {
		t.Fatalf("its own Works: %v, %v", works.Items, err)
	}
	denied(t, "Works of others", own.List(ctx, &workv1alpha1.WorkList{},
		client.InNamespace(clusterv1alpha1.ExecutionNamespace("member1"))))
	denied(t, "all Works", own.List(ctx, &workv1alpha1.WorkList{}))
	denied(t, "other members", own.Get(ctx, client.ObjectKey{Name: "member1"}, &clusterv1alpha1.Cluster{}))
	denied(t, "credentials", own.List(ctx, &corev1.SecretList{},
		client.InNamespace(clusterv1alpha1.CredentialsNamespace)))
	denied(t, "templates", own.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace)))
	cluster, err := w.getCluster(p.name)
	if err != nil {
		t.Fatal(err)
	}
	relabeled := cluster.DeepCopy()
	relabeled.Labels["region"] = "elsewhere"
	denied(t, "the labels of its member", own.Patch(ctx, relabeled, client.MergeFrom(cluster)))
	work := &works.Items[0]
	confirmed := work.DeepCopy()
	confirmed.Annotations[workv1alpha1.ConfirmDeletionAnnotation] = workv1alpha1.ConfirmDeletionYes
	eventually(t, "the API server enforces the admission policies", func() error {
		if err := own.Patch(ctx, confirmed.DeepCopy(), client.MergeFrom(work), client.DryRunAll); err == nil {
			return errors.New("an agent may confirm a deletion")
		}
		return nil
	})
	denied(t, "confirmations", own.Patch(ctx, confirmed, client.MergeFrom(work)))
	respecified := work.DeepCopy()
	respecified.Spec.SuspendDispatching = new(true)
	denied(t, "the content of a Work", own.Patch(ctx, respecified, client.MergeFrom(work)))
	finalized := work.DeepCopy()
	finalized.Finalizers = append(finalized.Finalizers, "example.com/test")
	if err := own.Patch(ctx, finalized, client.MergeFrom(work)); err != nil {
		t.Errorf("finalizers: %v", err)
	}
	restored := finalized.DeepCopy()
	restored.Finalizers = work.Finalizers
	if err := own.Patch(ctx, restored, client.MergeFrom(finalized)); err != nil {
		t.Errorf("finalizers: %v", err)
	}
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

// liesAreRefused writes what no agent of ours would.
func (w *world) liesAreRefused(t *testing.T, p *pulled) {
	own := p.asAgent(t)
	lie := func(amount string) {
		patch := fmt.Sprintf(`{"status":{"resourceSummary":{"allocatable":{"cpu":%q}}}}`, amount)
		cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: p.name}}
		if err := own.Status().Patch(ctx, cluster, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the member is not ready", func() error {
		lie("9e30")
		cluster, err := w.getCluster(p.name)
		if err != nil {
			return err
		}
		if c := meta.FindStatusCondition(cluster.Status.Conditions,
			clusterv1alpha1.ConditionReady); c.Status != metav1.ConditionFalse ||
			c.Reason != clusterv1alpha1.ReasonImplausible {
			return fmt.Errorf("got %+v", c)
		}
		return nil
	})
	w.ready(t, p.name, metav1.ConditionTrue, "ClusterReady")
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
