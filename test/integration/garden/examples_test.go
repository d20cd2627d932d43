package garden

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/apis"
	authenticationv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/authentication/v1alpha1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/client/clientset/versioned"
	"github.com/trellis-garden/trellis/pkg/client/informers/externalversions"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

const examplesFolder = "../../../landscape/local/examples"

// exampleFiles is the order in which the examples are created: what others refer to comes first.
var exampleFiles = []string{
	"project.yaml", "cloudprofile.yaml", "003-gardener-cloudprofile.yaml", "namespacedcloudprofile.yaml",
	"exposureclass.yaml",
	"quota.yaml", "workloadidentity.yaml", "secretbinding.yaml", "credentialsbinding.yaml", "internalsecret.yaml",
	"seed.yaml",
	"backupbucket.yaml", "backupentry.yaml",
	"controllerdeployment.yaml", "controllerdeployment-v1beta1.yaml", "controllerregistration.yaml",
	"controllerinstallation.yaml",
	"shoot.yaml", "shoot-member1.yaml", "shoot-member2.yaml", "shoot-fleet.yaml", "shootstate.yaml", "bastion.yaml",
	"managedseed.yaml", "managedseedset.yaml", "gardenlet.yaml",
}

// payloadFiles are examples of what is posted to subresources.
var payloadFiles = []string{"adminkubeconfigrequest.yaml", "viewerkubeconfigrequest.yaml", "tokenrequest.yaml"}

// The examples can be applied as they are to a garden with the objects of `make up`. There is one of every kind.
func TestExamples(t *testing.T) {
	examples := startEnvironment(t)
	clients, err := versioned.NewForConfig(examples.Config)
	if err != nil {
		t.Fatal(err)
	}
	prepareForExamples(t, examples.Client)
	t.Run("every file is tried", everyExampleIsTried)
	kinds := map[schema.GroupVersionKind]bool{}
	for _, file := range exampleFiles {
		t.Run(file, func(t *testing.T) {
			for _, object := range readObjects(t, filepath.Join(examplesFolder, file)) {
				kinds[object.GroupVersionKind()] = true
				createStrictly(t, examples.Client, object)
			}
			if file == "shoot.yaml" {
				bindToExampleSeed(t, clients)
			}
		})
	}
	for _, file := range payloadFiles {
		t.Run(file, func(t *testing.T) { kinds[decodeStrictly(t, filepath.Join(examplesFolder, file))] = true })
	}
	t.Run("every kind has an example", func(t *testing.T) { everyKindHasAnExample(t, kinds) })
	t.Run("clients", func(t *testing.T) { testClients(t, clients) })
	t.Run("tokens of workload identities", func(t *testing.T) { testTokens(t, examples) })
}

// issuer of the tokens of workload identities is the garden of the examples.
const issuer = "https://issuer.example.com"

// startEnvironment runs a garden of its own, so that the examples disturb nothing. It issues tokens.
func startEnvironment(t *testing.T) *environment.Environment {
	t.Helper()
	binary, err := environment.KubernetesBinary()
	if err != nil {
		t.Fatal(err)
	}
	started, err := environment.StartWith(context.Background(),
		environment.Options{Binary: binary, TokenIssuer: issuer})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(started.Stop)
	return started
}

// prepareForExamples makes what `make up` does, and what garden-controller-manager would.
func prepareForExamples(t *testing.T, c client.Client) {
	t.Helper()
	for project, namespace := range map[string]string{"garden": "garden", "demo": "garden-demo"} {
		labels := map[string]string{
			gardencorev1beta1.ProjectName: project, gardencorev1beta1.GardenRole: gardencorev1beta1.GardenRoleProject,
		}
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: labels}}
		err := c.Create(context.Background(), object)
		if apierrors.IsAlreadyExists(err) {
			err = c.Update(context.Background(), object)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	garden := &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "garden"}, Spec: gardencorev1beta1.ProjectSpec{Namespace: new("garden")},
	}
	if err := c.Create(context.Background(), garden); err != nil {
		t.Fatal(err)
	}
	registerExtensions(t, c)
	for _, file := range []string{"project.yaml", "cloudprofile.yaml", "credentials.yaml"} {
		for _, object := range readObjects(t, filepath.Join(examplesFolder, "../garden", file)) {
			createStrictly(t, c, object)
		}
	}
}

// registerExtensions says what our extensions offer; their charts are not needed.
func registerExtensions(t *testing.T, c client.Client) {
	t.Helper()
	files, err := filepath.Glob("../../../extensions/*/example/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no registrations found: %v", err)
	}
	for _, file := range files {
		for _, object := range readObjects(t, file) {
			if object.GetKind() == "ControllerRegistration" {
				createStrictly(t, c, object)
			}
		}
	}
}

func everyExampleIsTried(t *testing.T) {
	entries, err := os.ReadDir(examplesFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		name := entry.Name()
		if strings.Contains(name, "karmada") { // for fleets
			continue
		}
		if !slices.Contains(exampleFiles, name) && !slices.Contains(payloadFiles, name) {
			t.Errorf("%s is not in the list of this test", name)
		}
	}
}

// everyKindHasAnExample looks at all kinds of the groups that the garden serves.
func everyKindHasAnExample(t *testing.T, kinds map[schema.GroupVersionKind]bool) {
	served := []schema.GroupVersion{
		{Group: gardencorev1beta1.GroupName, Version: "v1"}, gardencorev1beta1.SchemeGroupVersion,
		securityv1alpha1.SchemeGroupVersion,
		seedmanagementv1alpha1.SchemeGroupVersion, operationsv1alpha1.SchemeGroupVersion,
		authenticationv1alpha1.SchemeGroupVersion,
	}
	for _, version := range served {
		for kind, goType := range apis.GardenScheme().KnownTypes(version) {
			ours := strings.HasPrefix(goType.PkgPath(), "github.com/trellis-garden/")
			if ours && !strings.HasSuffix(kind, "List") && !kinds[version.WithKind(kind)] {
				t.Errorf("%s has no example", version.WithKind(kind))
			}
		}
	}
}

func readObjects(t *testing.T, path string) []*unstructured.Unstructured {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

func createStrictly(t *testing.T, c client.Client, object *unstructured.Unstructured) {
	t.Helper()
	if err := c.Create(context.Background(), object, client.FieldValidation(metav1.FieldValidationStrict)); err != nil {
		t.Errorf("create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
}

func decodeStrictly(t *testing.T, path string) schema.GroupVersionKind {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var meta metav1.TypeMeta
	if err := yaml.Unmarshal(content, &meta); err != nil {
		t.Fatal(err)
	}
	object, err := apis.GardenScheme().New(meta.GroupVersionKind())
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(content, object); err != nil {
		t.Error(err)
	}
	return meta.GroupVersionKind()
}

// bindToExampleSeed does what the scheduler would if the seed were visible.
func bindToExampleSeed(t *testing.T, clients versioned.Interface) {
	t.Helper()
	ctx, shoots := context.Background(), clients.CoreV1beta1().Shoots("garden-demo")
	shoot, err := shoots.Get(ctx, "example", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	shoot.Spec.SeedName = new("example")
	bound, err := shoots.UpdateBinding(ctx, shoot.Name, shoot, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(bound.Spec.SeedName, "") != "example" {
		t.Errorf("seed = %v, want example", bound.Spec.SeedName)
	}
}

// testClients goes once through clientset, informers, listers and the requests for kubeconfigs.
func testClients(t *testing.T, clients versioned.Interface) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	factory := externalversions.NewSharedInformerFactory(clients, 0)
	shoots := factory.Core().V1beta1().Shoots()
	bastions := factory.Operations().V1alpha1().Bastions()
	synced := []toolscache.InformerSynced{shoots.Informer().HasSynced, bastions.Informer().HasSynced}
	factory.Start(ctx.Done())
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		t.Fatal("the informers' caches are not filled")
	}
	shoot, err := shoots.Lister().Shoots("garden-demo").Get("example")
	if err != nil || ptr.Deref(shoot.Spec.SeedName, "") != "example" {
		t.Errorf("shoot of the lister = %v, %v", shoot, err)
	}
	if _, err := bastions.Lister().Bastions("garden-demo").Get("example"); err != nil {
		t.Error(err)
	}
	if list, err := clients.SecurityV1alpha1().WorkloadIdentities("").List(ctx, metav1.ListOptions{}); err != nil ||
		len(list.Items) != 1 {
		t.Errorf("workload identities = %v, %v; want one", list, err)
	}
	if seeds, err := clients.SeedmanagementV1alpha1().ManagedSeeds("garden").List(ctx,
		metav1.ListOptions{}); err != nil || len(seeds.Items) != 1 {
		t.Errorf("managed seeds = %v, %v; want one", seeds, err)
	}
	deployment, err := clients.CoreV1().ControllerDeployments().Get(ctx, "example-v1beta1", metav1.GetOptions{})
	if err != nil || deployment.Helm == nil || deployment.Helm.OCIRepository == nil {
		t.Errorf("deployment in v1 = %+v, %v; want the chart's repository", deployment, err)
	}
	// There is no cluster behind it, which the server says.
	_, err = clients.CoreV1beta1().Shoots("garden-demo").CreateAdminKubeconfigRequest(ctx, "example",
		&authenticationv1alpha1.AdminKubeconfigRequest{}, metav1.CreateOptions{})
	if !apierrors.IsInvalid(err) {
		t.Errorf("admin kubeconfig: %v, want it refused for lack of an address", err)
	}
}
