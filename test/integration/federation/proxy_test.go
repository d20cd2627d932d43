package federation

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/egress"
	"github.com/trellis-garden/trellis/pkg/federation/controllers"
	"github.com/trellis-garden/trellis/pkg/federation/memberapi"
	"github.com/trellis-garden/trellis/pkg/federation/registration"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

var karmadaClusters = schema.GroupVersionResource{
	Group: "cluster.karmada.io", Version: "v1alpha1", Resource: "clusters",
}

// startWithMemberAPI waits until the fleet's API server sends requests to the controllers.
func (w *world) startWithMemberAPI(t *testing.T) (stop func()) {
	t.Helper()
	served := net.JoinHostPort(w.ownAddress(t), strconv.Itoa(egress.ServedAPIsPort))
	w.servers.servedAPIs.Store(served)
	stop = w.startFederation(t, func(o *controllers.Options) {
		o.MemberAPI = memberapi.Options{Listen: served, Address: egress.ServedAPIsAddress.String()}
	})
	eventually(t, "the proxy is served", func() error {
		resources, err := answer(w.fleetConfig, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1")
		if err == nil && !strings.Contains(resources, "clusters/proxy") {
			err = fmt.Errorf("got %s", resources)
		}
		return err
	})
	return stop
}

func (w *world) asAlice() *rest.Config {
	config := rest.CopyConfig(w.fleetConfig)
	config.BearerToken = aliceToken
	return config
}

// answer asks an API server for a path.
func answer(config *rest.Config, method, path string) (string, error) {
	c, err := rest.UnversionedRESTClientFor(unversioned(config))
	if err != nil {
		return "", err
	}
	body, err := c.Verb(method).RequestURI(path).Do(ctx).Raw()
	if err != nil && len(body) > 0 {
		err = fmt.Errorf("%w: %s", err, strings.ReplaceAll(string(body), `\"`, `"`))
	}
	return string(body), err
}

func refusedWith(t *testing.T, err error, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// grantTo lets a user do something.
func grantTo(t *testing.T, c client.Client, name string, rule rbacv1.PolicyRule, subject rbacv1.Subject) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{subject},
	}
	for _, object := range []client.Object{role, binding} {
		if err := c.Create(ctx, object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(ctx, object) })
	}
}

func rbacUser(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

func rbacGroup(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func TestMembersThroughTheFleet(t *testing.T) {
	w := newWorld(t)
	w.startWithMemberAPI(t)
	config, edge := w.startCluster(t, "proxied")
	if err := registration.Join(ctx, w.fleet, edge, config, joinOptions(t, "proxied")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fleet makes an impersonator", func() error {
		cluster, err := w.getCluster("proxied")
		if err == nil && cluster.Spec.ImpersonatorSecretRef == nil {
			err = errors.New("spec.impersonatorSecretRef is empty")
		}
		return err
	})
	const base = "/apis/cluster.karmada.io/v1alpha1/clusters/proxied/proxy"
	t.Run("an administrator of the fleet is one of the member", func(t *testing.T) {
		eventually(t, "namespaces are listed", func() error {
			list, err := answer(w.fleetConfig, http.MethodGet, base+"/api/v1/namespaces?limit=500")
			if err == nil && !strings.Contains(list, registration.ImpersonatorName("trellis-fleet-")[:13]) {
				err = fmt.Errorf("got %s", list)
			}
			return err
		})
	})
	t.Run("who may read Clusters may not use the proxy", func(t *testing.T) {
		grantTo(t, w.fleet, "alice-reads",
			rbacv1.PolicyRule{
				APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters"},
				Verbs: []string{"get", "list"},
			}, rbacUser("alice"))
		eventually(t, "alice reads Clusters", func() error {
			_, err := answer(w.asAlice(), http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters/proxied")
			return err
		})
		_, err := answer(w.asAlice(), http.MethodGet, base+"/api/v1/namespaces")
		refusedWith(t, err, `cannot get resource "clusters/proxy" in API group "cluster.karmada.io"`)
		_, err = answer(w.asAlice(), http.MethodDelete, "/apis/cluster.karmada.io/v1alpha1/clusters/proxied")
		refusedWith(t, err, `User "alice" cannot delete resource "clusters"`)
	})
	t.Run("who may use the proxy may in the member what its roles say", func(t *testing.T) {
		w.actsAsHerself(t, edge, base)
	})
	t.Run("who asks cannot say to be somebody else", func(t *testing.T) { w.cannotPretend(t, base) })
	t.Run("who has a name that means something in the member has another there",
		func(t *testing.T) { w.attacksByName(t, edge, base) })
	t.Run("the impersonator is nobody whom the fleet never is",
		func(t *testing.T) { w.attacksByImpersonator(t, config) })
	t.Run("watches stream", func(t *testing.T) { w.streams(t, edge, base) })
	t.Run("a token that the member does not know any more is replaced", func(t *testing.T) { w.replacesToken(t, base) })
	t.Run("what leaves takes its impersonator along", func(t *testing.T) {
		if err := registration.Unjoin(ctx, w.fleet, "proxied", environment.Patience, t.Logf); err != nil {
			t.Fatal(err)
		}
		w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("proxied"))
		fleetID, err := registration.Identity(ctx, w.fleet)
		if err != nil {
			t.Fatal(err)
		}
		name := registration.ImpersonatorName(registration.AccessName(fleetID))
		if err := wantGone(edge.Get(ctx, client.ObjectKey{Name: name}, &rbacv1.ClusterRole{})); err != nil {
			t.Error(err)
		}
		key := types.NamespacedName{
			Namespace: clusterv1alpha1.CredentialsNamespace, Name: registration.ImpersonatorName("proxied"),
		}
		if err := wantGone(w.fleet.Get(ctx, key, &corev1.Secret{})); err != nil {
			t.Error(err)
		}
	})
}

// replacesToken spoils the impersonator's token, as a rotation of the member's key for service accounts does.
func (w *world) replacesToken(t *testing.T, base string) {
	secret := &corev1.Secret{}
	if err := w.fleet.Get(ctx, types.NamespacedName{
		Namespace: clusterv1alpha1.CredentialsNamespace, Name: registration.ImpersonatorName("proxied"),
	}, secret); err != nil {
		t.Fatal(err)
	}
	before := secret.DeepCopy()
	secret.Data[clusterv1alpha1.SecretToken] = []byte("of a forgotten key")
	if err := w.fleet.Patch(ctx, secret, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the fleet asks for another", func() error {
		err := w.fleet.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && string(secret.Data[clusterv1alpha1.SecretToken]) == "of a forgotten key" {
			err = errors.New("not yet")
		}
		return err
	})
	eventually(t, "members are asked with it", func() error {
		_, err := answer(w.fleetConfig, http.MethodGet, base+"/api/v1/namespaces")
		return err
	})
}

func (w *world) actsAsHerself(t *testing.T, edge client.Client, base string) {
	grantTo(t, w.fleet, "alice-proxy", rbacv1.PolicyRule{
		APIGroups: []string{"cluster.karmada.io"}, Resources: []string{"clusters/proxy"},
		ResourceNames: []string{"proxied"}, Verbs: []string{"get", "create"},
	}, rbacUser("alice"))
	eventually(t, "the member refuses", func() error {
		_, err := answer(w.asAlice(), http.MethodGet, base+"/api/v1/namespaces")
		if err == nil || !strings.Contains(err.Error(),
			`User "`+w.namePrefix(t)+`alice" cannot list resource "namespaces"`) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	grantTo(t, edge, "developers",
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list"}},
		rbacGroup(w.namePrefix(t)+"developers"))
	eventually(t, "the member knows her group", func() error {
		_, err := answer(w.asAlice(), http.MethodGet, base+"/api/v1/namespaces")
		return err
	})
	_, err := answer(w.asAlice(), http.MethodDelete, base+"/api/v1/namespaces/default")
	refusedWith(t, err, `cannot delete resource "clusters/proxy"`)
	_, err = answer(w.asAlice(), http.MethodGet, strings.Replace(base, "proxied", "member1", 1)+"/api")
	refusedWith(t, err, `cannot get resource "clusters/proxy"`)
}

func (w *world) cannotPretend(t *testing.T, base string) {
	for header, value := range map[string]string{
		"Impersonate-Group": "system:masters", "X-Remote-User": "admin", "X-Remote-Group": "system:masters",
		"Authorization": "Bearer " + token, "Connection": "Impersonate-User",
	} {
		config := w.asAlice()
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return round(func(r *http.Request) (*http.Response, error) {
				r = r.Clone(r.Context())
				if header != "Authorization" {
					r.Header.Set(header, value)
				}
				return next.RoundTrip(r)
			})
		})
		if body, err := answer(config, http.MethodGet, base+"/api/v1/secrets"); err == nil {
			t.Errorf("%s: got %s", header, body)
		}
	}
}

// namePrefix begins the names of the fleet's users in members.
func (w *world) namePrefix(t *testing.T) string {
	t.Helper()
	fleetID, err := registration.Identity(ctx, w.fleet)
	if err != nil {
		t.Fatal(err)
	}
	return registration.NamePrefix(fleetID)
}

type round func(*http.Request) (*http.Response, error)

func (f round) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (w *world) streams(t *testing.T, edge client.Client, base string) {
	through := rest.CopyConfig(w.fleetConfig)
	through.Host += base
	c, err := client.New(through, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	namespace := newNamespaceIn(t, edge)
	created := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "before"}}
	if err := c.Create(ctx, created); err != nil {
		t.Fatalf("a kubeconfig with the path works as that of the member: %v", err)
	}
	raw, err := rest.UnversionedRESTClientFor(unversioned(through))
	if err != nil {
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(ctx, environment.Patience)
	defer cancel()
	stream, err := raw.Get().AbsPath("/api/v1/namespaces/"+namespace+"/configmaps").Param("watch",
		"true").Stream(bounded)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stream.Close() }()
	lines := bufio.NewReader(stream)
	for _, name := range []string{"before", "after"} {
		line, err := lines.ReadString('\n')
		if err != nil || !strings.Contains(line, `"name":"`+name+`"`) {
			t.Fatalf("got %q, %v, want %s", line, err, name)
		}
		if name == "before" {
			if err := edge.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "after"},
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func newNamespaceIn(t *testing.T, c client.Client) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "through-"}}
	if err := c.Create(ctx, namespace); err != nil {
		t.Fatal(err)
	}
	return namespace.Name
}

func TestMembersThatCannotBeAskedThroughTheFleet(t *testing.T) {
	w := newWorld(t)
	w.startWithMemberAPI(t)
	for name, mode := range map[string]clusterv1alpha1.SyncMode{
		"with-agent": clusterv1alpha1.Pull, "without-impersonator": clusterv1alpha1.Push,
	} {
		cluster := &clusterv1alpha1.Cluster{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode},
		}
		if err := w.fleet.Create(ctx, cluster); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = w.fleet.Delete(ctx, cluster)
			eventually(t, "the member is gone", func() error { _, err := w.getCluster(name); return wantGone(err) })
			w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace(name))
		})
		w.waitForNamespaceOf(t, name)
	}
	eventually(t, "a member whose agent has no tunnel is unavailable", func() error {
		_, err := answer(w.fleetConfig, http.MethodGet,
			"/apis/cluster.karmada.io/v1alpha1/clusters/with-agent/proxy/api")
		if err == nil || !strings.Contains(err.Error(), "member with-agent has an agent, which has had no tunnel") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	_, err := answer(w.fleetConfig, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters/nobody/proxy/api")
	refusedWith(t, err, `"nobody" not found`)
	_, err = answer(w.fleetConfig, http.MethodGet,
		"/apis/cluster.karmada.io/v1alpha1/clusters/without-impersonator/proxy/api")
	refusedWith(t, err, "spec.impersonatorSecretRef is empty", "trellisctl join without-impersonator")
}

// waitForNamespaceOf waits until the controllers have noticed a member.
func (w *world) waitForNamespaceOf(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the namespace of "+name+" is there", func() error {
		return w.fleet.Get(ctx, types.NamespacedName{Name: clusterv1alpha1.ExecutionNamespace(name)},
			&corev1.Namespace{})
	})
}

func TestClustersAreServedAsBefore(t *testing.T) {
	w := newWorld(t)
	stop := w.startWithMemberAPI(t)
	c, err := dynamic.NewForConfig(w.fleetConfig)
	if err != nil {
		t.Fatal(err)
	}
	clusters := c.Resource(karmadaClusters)
	t.Run("lists, and objects", func(t *testing.T) {
		list, err := clusters.List(ctx, metav1.ListOptions{})
		if err != nil || len(list.Items) < 2 || list.GetAPIVersion() != karmadaClusters.GroupVersion().String() {
			t.Fatalf("got %v, %v", list, err)
		}
		for _, item := range list.Items {
			if item.GetAPIVersion() != karmadaClusters.GroupVersion().String() {
				t.Errorf("%s has apiVersion %s", item.GetName(), item.GetAPIVersion())
			}
		}
	})
	t.Run("writing", func(t *testing.T) { w.writes(t, clusters) })
	t.Run("tables", func(t *testing.T) {
		config := rest.CopyConfig(w.fleetConfig)
		config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
		table, err := answer(config, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters?includeObject=Object")
		if err != nil || !strings.Contains(table, `"kind":"Table"`) ||
			strings.Contains(table, `"apiVersion":"cluster.karmada.io/v1"`) {
			t.Errorf("got %s, %v", table, err)
		}
	})
	t.Run("discovery", func(t *testing.T) {
		d, err := discovery.NewDiscoveryClientForConfig(w.fleetConfig)
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "it has the subresource", func() error {
			groups, lists, err := d.ServerGroupsAndResources()
			if err != nil {
				return err
			}
			for _, group := range groups {
				if group.Name == karmadaClusters.Group &&
					group.PreferredVersion.Version != clusterv1alpha1.GroupVersion.Version {
					return fmt.Errorf("who leaves the choice to the server gets %s", group.PreferredVersion.Version)
				}
			}
			for _, list := range lists {
				for _, resource := range list.APIResources {
					if list.GroupVersion == karmadaClusters.GroupVersion().String() &&
						resource.Name == "clusters/proxy" {
						return nil
					}
				}
			}
			return errors.New("no clusters/proxy")
		})
	})
	t.Run("when the controllers end, the API server serves them by itself", func(t *testing.T) {
		stop()
		if _, err := clusters.List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("at once: %v", err)
		}
		eventually(t, "it registers them by itself", func() error {
			body, err := answer(w.fleetConfig, http.MethodGet,
				"/apis/apiregistration.k8s.io/v1/apiservices/"+clusterv1alpha1.APIServiceName)
			if err == nil && !strings.Contains(body, "kube-aggregator.kubernetes.io/automanaged") {
				err = fmt.Errorf("got %s", body)
			}
			return err
		})
		_, err := answer(w.fleetConfig, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters/member1/proxy/api")
		refusedWith(t, err, "could not find the requested resource")
	})
}

func (w *world) writes(t *testing.T, clusters dynamic.ResourceInterface) {
	events, err := clusters.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=written"})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": map[string]any{"name": "written"},
		"spec": map[string]any{"syncMode": "Pull"},
	}}
	if _, err := clusters.Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}); err != nil {
		t.Fatalf("dry run: %v", err)
	}
	if _, err := clusters.Get(ctx, "written", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("after a dry run: %v", err)
	}
	created, err := clusters.Apply(ctx, "written", object, metav1.ApplyOptions{FieldManager: "somebody"})
	if err != nil || created.GetAPIVersion() != object.GetAPIVersion() {
		t.Fatalf("apply: %v, %v", created, err)
	}
	event := <-events.ResultChan()
	if got, ok := event.Object.(*unstructured.Unstructured); !ok || got.GetAPIVersion() != object.GetAPIVersion() ||
		got.GetName() != "written" {
		t.Fatalf("watched: %+v", event)
	}
	if _, err := clusters.Patch(ctx, "written", types.MergePatchType,
		[]byte(`{"apiVersion":"cluster.karmada.io/v1alpha1","spec":{"region":"here"}}`),
		metav1.PatchOptions{}); err != nil {
		t.Errorf("patch: %v", err)
	}
	eventually(t, "an update of what was read", func() error {
		read, err := clusters.Get(ctx, "written", metav1.GetOptions{})
		if err != nil {
			return err
		}
		read.SetLabels(map[string]string{"updated": "true"})
		_, err = clusters.Update(ctx, read, metav1.UpdateOptions{})
		return err
	})
	if _, err := clusters.Patch(ctx, "written", types.MergePatchType, []byte(`{"status":{"kubernetesVersion":"v0"}}`),
		metav1.PatchOptions{}, "status"); err != nil {
		t.Errorf("status: %v", err)
	}
	w.waitForNamespaceOf(t, "written")
	policy := metav1.DeletePropagationBackground
	if err := clusters.Delete(ctx, "written", metav1.DeleteOptions{PropagationPolicy: &policy}); err != nil {
		t.Errorf("delete: %v", err)
	}
	eventually(t, "the member is gone", func() error { _, err := w.getCluster("written"); return wantGone(err) })
	w.finalizeNamespace(t, clusterv1alpha1.ExecutionNamespace("written"))
}

// Only the API server may say for whom it asks.
func TestNobodyElseIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.startWithMemberAPI(t)
	body, err := answer(w.fleetConfig, http.MethodGet,
		"/apis/discovery.k8s.io/v1/namespaces/karmada-cluster/endpointslices/"+memberapi.ServiceName)
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscanf(body[strings.Index(body, `"port":`):], `"port":%d`, &port); err != nil {
		t.Fatal(err)
	}
	direct := &rest.Config{
		Host:            fmt.Sprintf("https://%s:%d", w.ownAddress(t), port),
		TLSClientConfig: rest.TLSClientConfig{Insecure: true},
	}
	direct.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return round(func(r *http.Request) (*http.Response, error) {
			r = r.Clone(r.Context())
			r.Header.Set("X-Remote-User", "admin")
			r.Header.Set("X-Remote-Group", "system:masters")
			return next.RoundTrip(r)
		})
	})
	_, err = answer(direct, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters")
	refusedWith(t, err, "only the fleet's kube-apiserver is answered")
}

// A process that was killed left the API server asking for an address where nobody answers.
func TestKilledControllersComeBack(t *testing.T) {
	w := newWorld(t)
	service := &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{
			Name:   clusterv1alpha1.APIServiceName,
			Labels: map[string]string{"app.kubernetes.io/managed-by": "trellis-federation"},
		},
		Spec: apiregistrationv1.APIServiceSpec{
			Group: karmadaClusters.Group, Version: karmadaClusters.Version, InsecureSkipTLSVerify: true,
			GroupPriorityMinimum: 1000, VersionPriority: 50,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: clusterv1alpha1.CredentialsNamespace, Name: "nobody",
			},
		},
	}
	eventually(t, "it is registered", func() error {
		if err := memberapi.Unpublish(ctx, w.fleet); err != nil {
			return err
		}
		registered := service.DeepCopy()
		if err := w.fleet.Get(ctx, client.ObjectKeyFromObject(service), registered); err != nil {
			return err
		}
		service.ResourceVersion = registered.ResourceVersion
		return w.fleet.Update(ctx, service)
	})
	eventually(t, "Karmada's version is away", func() error {
		_, err := answer(w.fleetConfig, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters")
		if !apierrors.IsServiceUnavailable(err) &&
			(err == nil || !strings.Contains(err.Error(), "service unavailable")) {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
	if _, err := w.getCluster("member1"); err != nil {
		t.Errorf("Trellis reads Clusters even so: %v", err)
	}
	w.startWithMemberAPI(t)
	if _, err := answer(w.fleetConfig, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters"); err != nil {
		t.Error(err)
	}
}

// Where the API server does not reach the controllers, as from a fleet with workers, Clusters are read as before while
// it is tried.
func TestClustersAreReadWhileThereIsNoWay(t *testing.T) {
	w := newWorld(t)
	address := w.ownAddress(t)
	w.startFederation(t, func(o *controllers.Options) {
		o.MemberAPI = memberapi.Options{Listen: "127.0.0.1:0", Address: address}
	})
	read := func() {
		t.Helper()
		if _, err := answer(w.fleetConfig, http.MethodGet, "/apis/cluster.karmada.io/v1alpha1/clusters"); err != nil {
			t.Fatal(err)
		}
	}
	trial := &apiregistrationv1.APIService{}
	eventually(t, "it is found that there is no way", func() error {
		read()
		if err := w.fleet.Get(ctx, client.ObjectKey{Name: clusterv1alpha1.TrialAPIServiceName}, trial); err != nil {
			return err
		}
		for _, condition := range trial.Status.Conditions {
			if condition.Type == apiregistrationv1.Available && condition.Status == apiregistrationv1.ConditionFalse {
				return nil
			}
		}
		return fmt.Errorf("got %+v", trial.Status.Conditions)
	})
	eventually(t, "the trial ends", func() error {
		read()
		return wantGone(w.fleet.Get(ctx, client.ObjectKeyFromObject(trial), trial))
	})
}
