// Package cleanup tests that a cluster is emptied before its deletion, with a real kube-apiserver and the controllers
// of a real kube-controller-manager. What is outside of a cluster, load balancers and volumes, is played by the test.
package cleanup

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/component/metricsserver"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/cleanup"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

const (
	loadBalancer = "service.kubernetes.io/load-balancer-cleanup"
	provisioner  = "external-provisioner.volume.kubernetes.io/finalizer"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

func TestCleanup(t *testing.T) {
	c := newClient(t)
	startControllers(t)
	system := []client.Object{
		&appsv1.Deployment{
			ObjectMeta: meta("kube-system", "coredns", gardencorev1beta1.ShootNoCleanup), Spec: deploymentSpec(),
		},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}},
	}
	create(t, c, system[0])
	create(t, c, metricsAPI())
	users := userObjects()
	for _, object := range users {
		create(t, c, object)
	}
	create(t, c, customObject(t, c))
	playInfrastructure(t, c)

	plan, err := cleanup.NewPlan(nil)
	if err != nil {
		t.Fatal(err)
	}
	cleaner := &cleanup.Cleaner{Client: c, Plan: plan, Now: time.Now}
	for _, step := range []func(context.Context) error{
		cleaner.Webhooks, cleaner.ExtendedAPIs, cleaner.Resources, cleaner.MetricsAPI, cleaner.Namespaces,
	} {
		eventually(t, step)
	}

	for _, object := range users {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			t.Errorf("%T %s is left: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
	for _, object := range system {
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil ||
			object.GetDeletionTimestamp() != nil {
			t.Errorf("%T %s must stay: %v", object, client.ObjectKeyFromObject(object), err)
		}
	}
}

// metricsAPI is the registration of metrics-server as it is where no node runs metrics-server: the API does not answer.
// resource-manager has labelled it.
func metricsAPI() client.Object {
	objects := metricsserver.Objects(metricsserver.Values{})
	i := slices.IndexFunc(objects,
		func(object client.Object) bool { return object.GetName() == metricsserver.APIServiceName })
	objects[i].SetLabels(map[string]string{gardencorev1beta1.ShootNoCleanup: "true"})
	return objects[i]
}

// newClient is a client of the cluster like gardenlet's.
func newClient(t *testing.T) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// startControllers runs the controllers of Kubernetes that a deletion relies on.
func startControllers(t *testing.T) {
	t.Helper()
	binary, err := environment.KubernetesBinary()
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := env.Kubeconfig("kube-controller-manager", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(t.TempDir() + "/kube-controller-manager.log")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "kube-controller-manager", "--kubeconfig="+kubeconfig, "--leader-elect=false",
		"--secure-port=0",
		"--controllers=namespace-controller,garbage-collector-controller,deployment-controller,replicaset-controller,persistentvolumeclaim-protection-controller")
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if data, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("kube-controller-manager:\n%s", data[max(0, len(data)-3000):])
		}
	})
}

// playInfrastructure does what cloud controllers and provisioners do, after a moment.
func playInfrastructure(t *testing.T, c client.Client) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = wait.PollUntilContextCancel(ctx, 100*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			release(ctx, c, &corev1.Service{}, client.ObjectKey{Namespace: "app", Name: "web"}, loadBalancer)
			claim := &corev1.PersistentVolumeClaim{}
			if err := c.Get(ctx, client.ObjectKey{Namespace: "app", Name: "data"}, claim); apierrors.IsNotFound(err) {
				_ = c.Delete(ctx, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv"}})
				release(ctx, c, &corev1.PersistentVolume{}, client.ObjectKey{Name: "pv"}, provisioner,
					"kubernetes.io/pv-protection")
			}
			return false, nil
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
}

// release removes finalizers of an object under deletion.
func release(ctx context.Context, c client.Client, object client.Object, key client.ObjectKey, finalizers ...string) {
	if c.Get(ctx, key, object) != nil || object.GetDeletionTimestamp() == nil {
		return
	}
	object.SetFinalizers(slices.DeleteFunc(object.GetFinalizers(),
		func(f string) bool { return slices.Contains(finalizers, f) }))
	_ = c.Update(ctx, object)
}

// userObjects are what a user's cluster may be full of.
func userObjects() []client.Object {
	service := &corev1.Service{ObjectMeta: meta("app", "web"), Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}},
	}}
	service.Finalizers = []string{loadBalancer}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv", Finalizers: []string{provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: storage(), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{
				Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "app", Name: "data",
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				CSI: &corev1.CSIPersistentVolumeSource{Driver: "example.com", VolumeHandle: "v"},
			},
		}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: meta("app", "data"), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeName: "pv",
		StorageClassName: new(""),
		Resources:        corev1.VolumeResourceRequirements{Requests: storage()},
	}}
	claim.Finalizers = []string{"kubernetes.io/pvc-protection"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "app"}},
		&corev1.ConfigMap{ObjectMeta: meta("app", "settings")},
		volume, claim, service,
		&appsv1.Deployment{ObjectMeta: meta("app", "web"), Spec: deploymentSpec()},
		&corev1.Pod{ObjectMeta: meta("app", "shell"), Spec: podSpec()},
		customResourceDefinition(),
		// It refuses every change of pods, as nobody serves it.
		&admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "refuses"},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "refuses.example.com", AdmissionReviewVersions: []string{"v1"},
				SideEffects:  new(admissionregistrationv1.SideEffectClassNone),
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1")},
				Rules: []admissionregistrationv1.RuleWithOperations{{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Delete},
					Rule: admissionregistrationv1.Rule{
						APIGroups: []string{"", "apps"}, APIVersions: []string{"*"}, Resources: []string{"*"},
					},
				}},
			}}},
	}
}

// meta is the metadata of an object; labels get the value "true".
func meta(namespace, name string, labels ...string) metav1.ObjectMeta {
	m := metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for _, label := range labels {
		m.Labels[label] = "true"
	}
	return m
}

func storage() corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}

// podSpec uses the claim.
func podSpec() corev1.PodSpec {
	return corev1.PodSpec{
		Containers:                   []corev1.Container{{Name: "c", Image: "example.com/c:v1"}},
		AutomountServiceAccountToken: new(false),
	}
}

func deploymentSpec() appsv1.DeploymentSpec {
	labels := map[string]string{"app": "web"}
	spec := podSpec()
	spec.Volumes = []corev1.Volume{
		{
			Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"},
			},
		},
	}
	return appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}
}

func customResourceDefinition() *apiextensionsv1.CustomResourceDefinition {
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things.example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: "things", Singular: "thing", Kind: "Thing", ListKind: "ThingList",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{
					OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
						Type: "object", XPreserveUnknownFields: new(true),
					},
				},
			}},
		}}
}

// customObject waits until its kind is served, and returns an object of it.
func customObject(t *testing.T, c client.Client) client.Object {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("example.com/v1")
	object.SetKind("Thing")
	object.SetNamespace("app")
	object.SetName("thing")
	eventually(t, func(ctx context.Context) error {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object.DeepCopy())
		if apierrors.IsNotFound(err) && strings.Contains(err.Error(), `"thing"`) {
			return nil
		}
		return err
	})
	return object
}

func create(t *testing.T, c client.Client, object client.Object) {
	t.Helper()
	if err := c.Create(t.Context(), object.DeepCopyObject().(client.Object)); err != nil {
		t.Fatalf("%T %s: %v", object, client.ObjectKeyFromObject(object), err)
	}
}

// eventually repeats a function until it succeeds.
func eventually(t *testing.T, try func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, environment.Patience, true,
		func(ctx context.Context) (bool, error) {
			last = try(ctx)
			return last == nil, nil
		})
	if err != nil {
		t.Fatalf("not within %s: %v", environment.Patience, last)
	}
}
