package garden

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1 "github.com/trellis-garden/trellis/pkg/apis/core/v1"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

func TestDiscoveryOfNewKinds(t *testing.T) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for version, want := range map[string]map[string][]string{
		"core.gardener.cloud/v1": {"controllerdeployments": {"ctrldeploy"}},
		"seedmanagement.gardener.cloud/v1alpha1": {
			"managedseeds": {"ms"}, "managedseeds/status": nil, "managedseedsets": {"mss"},
			"managedseedsets/status": nil, "managedseedsets/scale": nil, "gardenlets": {"gl", "glet"},
			"gardenlets/status": nil,
		},
		"operations.gardener.cloud/v1alpha1": {"bastions": nil, "bastions/status": nil},
		"security.gardener.cloud/v1alpha1":   {"workloadidentities/token": nil},
	} {
		list, err := discoverer.ServerResourcesForGroupVersion(version)
		if err != nil {
			t.Errorf("%s: %v", version, err)
			continue
		}
		for name, shortNames := range want {
			at := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
			if at < 0 || !slices.Equal(list.APIResources[at].ShortNames, shortNames) ||
				len(list.APIResources[at].Categories) > 0 {
				t.Errorf("%s serves %s as %+v, want short names %v", version, name, list.APIResources, shortNames)
			}
		}
	}
	group, _, err := discoverer.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(group, func(g *metav1.APIGroup) bool { return g.Name == "core.gardener.cloud" })
	if at < 0 || group[at].PreferredVersion.Version != "v1" || len(group[at].Versions) != 2 {
		t.Errorf("core.gardener.cloud = %+v", group[at])
	}
}

func TestControllerDeploymentInBothVersions(t *testing.T) {
	ctx := context.Background()
	key := client.ObjectKey{Name: "both"}
	newer := &gardencorev1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "both"},
		Helm:       &gardencorev1.HelmControllerDeployment{RawChart: []byte("chart")},
		Resources: []gardencorev1beta1.NamedResourceReference{{
			Name: "pull", ResourceRef: autoscalingv1.CrossVersionObjectReference{
				APIVersion: "v1", Kind: "Secret", Name: "pull",
			},
		}},
	}
	create(t, newer)
	older := &gardencorev1beta1.ControllerDeployment{}
	if err := env.Client.Get(ctx, key, older); err != nil {
		t.Fatal(err)
	}
	if older.Type != "helm" || string(older.ProviderConfig.Raw) != `{"chart":"`+
		base64.StdEncoding.EncodeToString([]byte("chart"))+`"}` || older.UID != newer.UID || older.Generation != 1 {
		t.Errorf("as v1beta1 it is %+v", older)
	}

	older.ProviderConfig.Raw = []byte(`{"chart":"b3RoZXI=","values":{"a":1}}`)
	if err := env.Client.Update(ctx, older); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Get(ctx, key, newer); err != nil {
		t.Fatal(err)
	}
	if string(newer.Helm.RawChart) != "other" || string(newer.Helm.Values.Raw) != `{"a":1}` ||
		len(newer.Resources) != 1 || newer.Generation != 2 || len(newer.Annotations) > 0 {
		t.Errorf("as v1 it is %+v", newer)
	}

	custom := &gardencorev1beta1.ControllerDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: "custom"}, Type: "custom",
		ProviderConfig: runtime.RawExtension{Raw: []byte(`{"a":"b"}`)},
	}
	create(t, custom)
	list := &gardencorev1.ControllerDeploymentList{}
	if err := env.Client.List(ctx, list, client.MatchingFields{"metadata.name": "custom"}); err != nil ||
		len(list.Items) != 1 {
		t.Fatalf("listed as v1: %+v, %v", list.Items, err)
	}
	item := &list.Items[0]
	metav1.SetMetaDataLabel(&item.ObjectMeta, "written", "as-v1")
	if err := env.Client.Update(ctx, item); err != nil {
		t.Fatal(err)
	}
	if err := get(custom); err != nil || custom.Type != "custom" || string(custom.ProviderConfig.Raw) != `{"a":"b"}` ||
		len(custom.Annotations) > 0 || custom.Labels["written"] != "as-v1" {
		t.Errorf("after a write as v1 it is %+v, %v", custom, err)
	}
}

func TestControllerDeploymentIsRefusedInTheClientsVersion(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "wrong"}
	expectRefusal(t, env.Client.Create(context.Background(),
		&gardencorev1.ControllerDeployment{ObjectMeta: meta, Helm: &gardencorev1.HelmControllerDeployment{}}),
		"helm.rawChart")
	expectRefusal(t, env.Client.Create(context.Background(),
		&gardencorev1beta1.ControllerDeployment{
			ObjectMeta: meta, Type: "helm", ProviderConfig: runtime.RawExtension{Raw: []byte(`{}`)},
		}), "providerConfig.chart")
}

func TestServerSideApplyInBothVersions(t *testing.T) {
	ctx := context.Background()
	apply := func(owner, version string, fields map[string]any) error {
		object := map[string]any{
			"apiVersion": "core.gardener.cloud/" + version, "kind": "ControllerDeployment",
			"metadata": map[string]any{"name": "applied"},
		}
		for key, value := range fields {
			object[key] = value
		}
		return env.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(&unstructured.Unstructured{
			Object: object,
		}), client.FieldOwner(owner))
	}
	if err := apply("one", "v1", map[string]any{"helm": map[string]any{"rawChart": "Zm9v"}}); err != nil {
		t.Fatal(err)
	}
	if err := apply("two", "v1beta1", map[string]any{"injectGardenKubeconfig": true}); err != nil {
		t.Fatal(err)
	}
	applied := &gardencorev1.ControllerDeployment{ObjectMeta: metav1.ObjectMeta{Name: "applied"}}
	if err := get(applied); err != nil {
		t.Fatal(err)
	}
	if applied.Helm == nil || string(applied.Helm.RawChart) != "foo" ||
		!ptr.Deref(applied.InjectGardenKubeconfig, false) {
		t.Errorf("applied = %+v", applied)
	}
}

// expectRefusal wants an error that names a field.
func expectRefusal(t *testing.T, err error, path string) {
	t.Helper()
	status, ok := err.(apierrors.APIStatus)
	if !ok || !apierrors.IsInvalid(err) ||
		!slices.ContainsFunc(status.Status().Details.Causes,
			func(c metav1.StatusCause) bool { return c.Field == path }) {
		t.Errorf("error = %v, want one about %s", err, path)
	}
}

// newGardenShoot makes a shoot in the namespace garden, from which a seed can be made.
func newGardenShoot(t *testing.T, name string) *gardencorev1beta1.Shoot {
	t.Helper()
	namespace := gardencorev1beta1.GardenNamespace
	for _, object := range []client.Object{
		&gardencorev1beta1.Project{
			ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: gardencorev1beta1.ProjectSpec{Namespace: &namespace},
		},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "local"}},
		&securityv1alpha1.CredentialsBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "local"},
			Provider:   securityv1alpha1.CredentialsBindingProvider{Type: "local"},
			CredentialsRef: corev1.ObjectReference{
				APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "local",
			},
		},
	} {
		if err := env.Client.Create(context.Background(), object); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
	offerExtensions(t)
	create(t, newProfile(name))
	shoot := newShoot(namespace, name, name)
	create(t, shoot)
	return shoot
}

// configOf is a gardenlet's configuration with a seed.
func configOf(t *testing.T, seed *gardencorev1beta1.Seed) *runtime.RawExtension {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
		"seedConfig": map[string]any{"metadata": map[string]any{"labels": seed.Labels}, "spec": seed.Spec},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &runtime.RawExtension{Raw: data}
}

// configOfShoot leaves out what the shoot says.
func configOfShoot(t *testing.T, labels map[string]string) *runtime.RawExtension {
	return configOf(t, &gardencorev1beta1.Seed{ObjectMeta: metav1.ObjectMeta{Labels: labels}})
}

// writeStatusOnly checks that the status is written through its subresource, and nothing else, and through nothing
// else.
func writeStatusOnly(t *testing.T, object client.Object, setStatus, setSpec func(), isSet func() (status, spec bool)) {
	t.Helper()
	ctx := context.Background()
	setStatus()
	if err := env.Client.Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	if status, _ := isSet(); status {
		t.Error("the status was written with the object")
	}
	setStatus()
	setSpec()
	if err := env.Client.Status().Update(ctx, object); err != nil {
		t.Fatal(err)
	}
	if err := get(object); err != nil {
		t.Fatal(err)
	}
	if status, spec := isSet(); !status || spec {
		t.Errorf("through the subresource: status written %v, specification written %v; want only the status", status,
			spec)
	}
}

// Bindings that name no namespace mean their own, also when only the address of the request has it.
func TestBindingsTakeTheirNamespace(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "nearby")
	scope := corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"}
	create(t, &gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "small"},
		Spec:       gardencorev1beta1.QuotaSpec{Scope: scope},
	})
	objects, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		kind, resource, reference string
		version                   schema.GroupVersion
		secret                    map[string]any
	}{
		{
			"SecretBinding", "secretbindings", "secretRef", gardencorev1beta1.SchemeGroupVersion,
			map[string]any{"name": "local"},
		},
		{
			"CredentialsBinding", "credentialsbindings", "credentialsRef", securityv1alpha1.SchemeGroupVersion,
			map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "local"},
		},
	} {
		bindings := objects.Resource(test.version.WithResource(test.resource)).Namespace(namespace)
		binding := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": test.version.String(), "kind": test.kind, "metadata": map[string]any{"name": "nearby"},
			"provider": map[string]any{"type": "local"}, test.reference: test.secret,
			"quotas": []any{map[string]any{"name": "small"}},
		}}
		stored, err := bindings.Create(ctx, binding, metav1.CreateOptions{})
		if err != nil {
			t.Errorf("%s: %v", test.kind, err)
			continue
		}
		of, _, _ := unstructured.NestedString(stored.Object, test.reference, "namespace")
		quotas, _, _ := unstructured.NestedSlice(stored.Object, "quotas")
		if len(quotas) != 1 || quotas[0].(map[string]any)["namespace"] != namespace || of != namespace {
			t.Errorf("%s refers to namespaces %q and %v, want %s", test.kind, of, quotas, namespace)
		}
		binding.SetResourceVersion(stored.GetResourceVersion())
		if _, err := bindings.Update(ctx, binding, metav1.UpdateOptions{}); err != nil {
			t.Errorf("%s as it was created: %v", test.kind, err)
		}
	}
}

func TestManagedSeed(t *testing.T) {
	ctx := context.Background()
	shoot := newGardenShoot(t, "ms")
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "ms"},
		Spec: seedmanagementv1alpha1.ManagedSeedSpec{
			Shoot:     &seedmanagementv1alpha1.Shoot{Name: shoot.Name},
			Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: configOfShoot(t, nil)},
		},
	}
	wrong := managedSeed.DeepCopy()
	wrong.Spec.Gardenlet.Config = configOf(t,
		&gardencorev1beta1.Seed{
			Spec: gardencorev1beta1.SeedSpec{Provider: gardencorev1beta1.SeedProvider{Type: "other"}},
		})
	expectRefusal(t, env.Client.Create(ctx, wrong), "spec.gardenlet.config.seedConfig.spec.provider.type")
	bare := managedSeed.DeepCopy() // its shoot says what the seed is like
	bare.Spec.Gardenlet.Config = nil
	if err := env.Client.Create(ctx, bare, client.DryRunAll); err != nil {
		t.Errorf("without a configuration: %v", err)
	}
	create(t, managedSeed)
	if ptr.Deref(managedSeed.Spec.Gardenlet.Bootstrap, "") != seedmanagementv1alpha1.BootstrapToken ||
		managedSeed.Generation != 1 {
		t.Errorf("stored with %+v", managedSeed)
	}
	for selected, want := range map[string]int{shoot.Name: 1, "other": 0} {
		list := &seedmanagementv1alpha1.ManagedSeedList{}
		if err := env.Client.List(ctx, list, client.InNamespace("garden"),
			client.MatchingFields{"spec.shoot.name": selected}); err != nil || len(list.Items) != want {
			t.Errorf("%d managed seeds of shoot %s, %v, want %d", len(list.Items), selected, err, want)
		}
	}
	writeStatusOnly(t, managedSeed,
		func() { managedSeed.Status.ObservedGeneration = 1 },
		func() { managedSeed.Spec.Gardenlet.Deployment.ReplicaCount = new(int32(7)) },
		func() (bool, bool) {
			return managedSeed.Status.ObservedGeneration == 1, *managedSeed.Spec.Gardenlet.Deployment.ReplicaCount == 7
		})

	managedSeed.Annotations = map[string]string{
		gardencorev1beta1.GardenerOperation: gardencorev1beta1.GardenerOperationReconcile,
	}
	if err := env.Client.Update(ctx, managedSeed); err != nil || managedSeed.Generation != 2 ||
		len(managedSeed.Annotations) > 0 {
		t.Errorf("after reconcile: generation %d, annotations %v, %v", managedSeed.Generation, managedSeed.Annotations,
			err)
	}
	managedSeed.Spec.Shoot.Name = "other"
	expectRefusal(t, env.Client.Update(ctx, managedSeed), "spec.shoot")
	expectColumns(t, "/apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/managedseeds",
		"Name, Status, Shoot, Age")
}

func TestManagedSeedSet(t *testing.T) {
	ctx := context.Background()
	labels := map[string]string{"set": "mss"}
	set := &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "mss"},
		Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{
			Selector: metav1.LabelSelector{MatchLabels: labels},
			Template: seedmanagementv1alpha1.ManagedSeedTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: seedmanagementv1alpha1.ManagedSeedSpec{
					Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: configOfShoot(t, labels)},
				},
			},
			ShootTemplate: gardencorev1beta1.ShootTemplate{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: newShoot("garden", "", "mss", func(s *gardencorev1beta1.Shoot) {
					s.Spec.Kubernetes.Version = "1.36.3"
				}).Spec},
		},
	}
	wrong := set.DeepCopy()
	wrong.Spec.ShootTemplate.Labels = nil
	expectRefusal(t, env.Client.Create(ctx, wrong), "spec.shootTemplate.metadata.labels")
	create(t, set)
	writeStatusOnly(t, set,
		func() { set.Status.Replicas = 1 },
		func() { set.Spec.Replicas = new(int32(7)) },
		func() (bool, bool) { return set.Status.Replicas == 1, *set.Spec.Replicas == 7 })

	scale := &autoscalingv1.Scale{}
	if err := env.Client.SubResource("scale").Get(ctx, set, scale); err != nil || scale.Spec.Replicas != 1 ||
		scale.Status.Replicas != 1 || scale.Status.Selector != "set=mss" {
		t.Fatalf("scale = %+v, %v", scale, err)
	}
	scale.Spec.Replicas = 3
	if err := env.Client.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale)); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.SubResource("scale").Patch(ctx, set,
		client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":4}}`)),
		&client.SubResourcePatchOptions{SubResourceBody: scale}); err != nil {
		t.Errorf("patch of the scale: %v", err)
	}
	if err := get(set); err != nil || *set.Spec.Replicas != 4 || set.Generation != 3 {
		t.Errorf("scaled to %d, generation %d, %v", *set.Spec.Replicas, set.Generation, err)
	}
	scale.Spec.Replicas = -1
	expectRefusal(t, env.Client.SubResource("scale").Update(ctx, set, client.WithSubResourceBody(scale)),
		"spec.replicas")
	expectColumns(t, "/apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/managedseedsets",
		"Name, Ready, Pending, Age")
}

func TestGardenlet(t *testing.T) {
	ctx := context.Background()
	gardenlet := &seedmanagementv1alpha1.Gardenlet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "unmanaged"},
		Spec: seedmanagementv1alpha1.GardenletSpec{
			Deployment: seedmanagementv1alpha1.GardenletSelfDeployment{Helm: seedmanagementv1alpha1.GardenletHelm{
				OCIRepository: gardencorev1.OCIRepository{
					Repository: new("registry.example.com/gardenlet"), Tag: new("v1"),
				},
			}},
			Config: configOf(t, newSeed("unmanaged", "here")),
		},
	}
	wrong := gardenlet.DeepCopy()
	wrong.Spec.Deployment.Helm.OCIRepository.Digest = new("md5:1")
	expectRefusal(t, env.Client.Create(ctx, wrong), "spec.deployment.helm.ociRepository.digest")
	wrong = gardenlet.DeepCopy()
	wrong.Namespace = "default"
	expectRefusal(t, env.Client.Create(ctx, wrong), "metadata.namespace")
	create(t, gardenlet)
	writeStatusOnly(t, gardenlet,
		func() { gardenlet.Status.ObservedGeneration = 1 },
		func() { gardenlet.Spec.Deployment.ReplicaCount = new(int32(7)) },
		func() (bool, bool) {
			return gardenlet.Status.ObservedGeneration == 1, *gardenlet.Spec.Deployment.ReplicaCount == 7
		})
	expectColumns(t, "/apis/seedmanagement.gardener.cloud/v1alpha1/namespaces/garden/gardenlets",
		"Name, OCI Repository, Reconciled, Age")
}

func TestBastion(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "bastion")
	create(t, newProfile("bastion"))
	seed := newSeed("bastion", "bastion")
	create(t, seed)
	makeReady(t, seed)
	shoot := newShoot(namespace, "member1", "bastion")
	create(t, shoot)
	shoot.Spec.SeedName = &seed.Name
	if err := env.Client.SubResource("binding").Update(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cli-1"},
		Spec: operationsv1alpha1.BastionSpec{
			ShootRef: corev1.LocalObjectReference{Name: shoot.Name},
			SSHPublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIKWK1GmoSqJSUMRlZQgRRS8zA6HcXEFpZfNTlTV4G2Jr " +
				"me@example.com",
			Ingress: []operationsv1alpha1.BastionIngressPolicy{
				{IPBlock: networkingv1.IPBlock{CIDR: "203.0.113.7/32"}},
			},
		},
	}
	wrong := bastion.DeepCopy()
	wrong.Spec.Ingress[0].IPBlock.CIDR = "here"
	expectRefusal(t, env.Client.Create(ctx, wrong), "spec.ingress[0].ipBlock.cidr")
	create(t, bastion)
	if bastion.Annotations[gardencorev1beta1.GardenerCreatedBy] != "admin" ||
		!bastion.Status.ExpirationTimestamp.After(bastion.CreationTimestamp.Time) {
		t.Errorf("stored as %+v", bastion)
	}
	for _, selected := range []client.MatchingFields{
		{"spec.seedName": seed.Name}, {"spec.shootRef.name": shoot.Name}, {"metadata.name": bastion.Name},
	} {
		list := &operationsv1alpha1.BastionList{}
		if err := env.Client.List(ctx, list, client.InNamespace(namespace), selected); err != nil ||
			len(list.Items) != 1 {
			t.Errorf("%d bastions with %v, %v", len(list.Items), selected, err)
		}
	}
	later := time.Now().Add(24 * time.Hour)
	writeStatusOnly(t, bastion,
		func() {
			bastion.Status.HostKeys = []string{"ssh-ed25519 AAAA"}
			bastion.Status.ObservedGeneration, bastion.Status.ExpirationTimestamp = new(int64(1)),
				new(metav1.NewTime(later))
		},
		func() { bastion.Spec.Ingress[0].IPBlock.CIDR = "0.0.0.0/0" },
		func() (bool, bool) {
			return bastion.Status.ObservedGeneration != nil && len(bastion.Status.HostKeys) == 1,
				bastion.Spec.Ingress[0].IPBlock.CIDR == "0.0.0.0/0"
		})
	if !bastion.Status.ExpirationTimestamp.Time.Before(later.Add(-time.Hour)) {
		t.Errorf("who writes the status chooses when a bastion expires: %s", bastion.Status.ExpirationTimestamp)
	}
	bastion.Annotations[gardencorev1beta1.GardenerOperation] = gardencorev1beta1.GardenerOperationKeepalive
	if err := env.Client.Update(ctx, bastion); err != nil ||
		bastion.Annotations[gardencorev1beta1.GardenerOperation] != "" || bastion.Generation != 1 {
		t.Errorf("after keepalive: %v, generation %d, %v", bastion.Annotations, bastion.Generation, err)
	}
	expectColumns(t, "/apis/operations.gardener.cloud/v1alpha1/namespaces/"+namespace+"/bastions",
		"Name, Shoot, Seed, IP, Heartbeat, Expires, Age")
}

func expectColumns(t *testing.T, path, want string) {
	t.Helper()
	table := &metav1.Table{}
	if err := restClient(t).Get().AbsPath(path).SetHeader("Accept",
		"application/json;as=Table;v=v1;g=meta.k8s.io").Do(context.Background()).Into(table); err != nil {
		t.Fatal(err)
	}
	var columns []string
	for _, column := range table.ColumnDefinitions {
		columns = append(columns, column.Name)
	}
	if got := strings.Join(columns, ", "); got != want || len(table.Rows) == 0 {
		t.Errorf("columns = %s of %d rows, want %s", got, len(table.Rows), want)
	}
}

func newIdentity(namespace string) *securityv1alpha1.WorkloadIdentity {
	return &securityv1alpha1.WorkloadIdentity{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "aws"},
		Spec: securityv1alpha1.WorkloadIdentitySpec{
			Audiences: []string{"sts.amazonaws.com"}, TargetSystem: securityv1alpha1.TargetSystem{Type: "aws"},
		},
		Status: securityv1alpha1.WorkloadIdentityStatus{Sub: "admin"},
	}
}

func TestNoTokensWithoutKey(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "nokey")
	identity := newIdentity(namespace)
	create(t, identity)
	if want := "gardener.cloud:workloadidentity:" + namespace + ":aws:" +
		string(identity.UID); identity.Status.Sub != want {
		t.Errorf("sub = %s, want %s", identity.Status.Sub, want)
	}
	identity.Status.Sub = ""
	identity.Spec.Audiences = append(identity.Spec.Audiences, "other")
	if err := env.Client.Update(ctx, identity); err != nil || identity.Status.Sub == "" {
		t.Errorf("after an update without the status: sub %q, %v", identity.Status.Sub, err)
	}
	err := env.Client.SubResource("token").Create(ctx, identity, &securityv1alpha1.TokenRequest{})
	if !apierrors.IsServiceUnavailable(err) || !strings.Contains(err.Error(), "--workload-identity-signing-key-file") {
		t.Errorf("error = %v, want it to name the flag", err)
	}
}

// published returns what garden-apiserver tells those who have no credentials.
func published(t *testing.T, garden *environment.Environment, path string) string {
	t.Helper()
	insecure := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := insecure.Get(garden.GardenAPIServerURL + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s: %s, %v", path, response.Status, text, err)
	}
	return string(text)
}

// testTokens has a garden issue tokens, whose issuer is issuer.
func testTokens(t *testing.T, garden *environment.Environment) {
	ctx := context.Background()
	identity := newIdentity("default")
	if err := garden.Client.Create(ctx, identity); err != nil {
		t.Fatal(err)
	}
	request := &securityv1alpha1.TokenRequest{
		Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(6 * 3600))},
	}
	if err := garden.Client.SubResource("token").Create(ctx, identity, request); err != nil {
		t.Fatal(err)
	}
	if left := time.Until(request.Status.ExpirationTimestamp.Time); left < 5*time.Hour || left > 6*time.Hour {
		t.Errorf("the token expires in %s", left)
	}
	parts := strings.Split(request.Status.Token, ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || len(parts) != 3 || !bytes.Contains(payload, []byte(`"sub":"`+identity.Status.Sub+`"`)) {
		t.Errorf("token = %s, %v", payload, err)
	}
	if keys := published(t, garden, "/jwks"); !strings.Contains(keys, `"kty":"RSA"`) {
		t.Errorf("the issuer's keys are %s", keys)
	}
	if described := published(t, garden, "/.well-known/openid-configuration"); !strings.Contains(described,
		`"jwks_uri":"`+issuer+`/jwks"`) {
		t.Errorf("the issuer says of itself %s", described)
	}
	request = &securityv1alpha1.TokenRequest{Spec: securityv1alpha1.TokenRequestSpec{ExpirationSeconds: new(int64(1))}}
	expectRefusal(t, garden.Client.SubResource("token").Create(ctx, identity, request), "spec.expirationSeconds")
}
