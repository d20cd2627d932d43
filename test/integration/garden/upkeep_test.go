package garden

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	operationsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/operations/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	seedmanagementv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/seedmanagement/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/controllermanager"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
)

// TestUpkeep shows what garden-controller-manager does to objects that are there: it protects, merges, updates and
// expires them.
func TestUpkeep(t *testing.T) {
	startControllerManager(t)
	t.Run("roles of extensions", testExtensionRoles)
	t.Run("activity of projects", testActivity)
	t.Run("quotas in use", testQuotaInUse)
	t.Run("namespaced cloud profiles", testNamespacedCloudProfile)
	t.Run("references of shoots", testReferences)
	t.Run("status of shoots", testStatusLabel)
	t.Run("maintenance", testMaintenance)
	t.Run("lifetime of shoots", testLifetime)
	t.Run("bastions", testBastion)
	t.Run("conditions of seeds", testSeedConditions)
	t.Run("sets of managed seeds", testManagedSeedSet)
}

// startControllerManager runs garden-controller-manager as its own user until the test ends.
func startControllerManager(t *testing.T) {
	t.Helper()
	config, err := env.ConfigFor(env.Config.Host, gardencorev1beta1.GardenControllerManagerUser)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- controllermanager.Run(ctx, config, controllermanager.Options{
			HealthAddress: "0", MetricsAddress: "0", SkipNameValidation: true, ProjectQuotas: project.DefaultQuotas(),
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("garden-controller-manager ended with: %v; what runs still:\n%s", err, runningControllers())
		}
	})
}

// runningControllers returns the stacks of this process that have to do with controllers, without those of the API
// server and of etcd.
func runningControllers() string {
	var stacks strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&stacks, 1)
	return strings.Join(slices.DeleteFunc(strings.Split(stacks.String(), "\n\n"), func(stack string) bool {
		return !strings.Contains(stack, "sigs.k8s.io/controller-runtime")
	}), "\n\n")
}

// deleteConfirmed deletes an object as its owner would.
func deleteConfirmed(t *testing.T, object client.Object) {
	t.Helper()
	patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[gardencorev1beta1.ConfirmationDeletion] = "true"
	object.SetAnnotations(annotations)
	if err := env.Client.Patch(context.Background(), object, patch); err != nil {
		t.Fatal(err)
	}
	if err := env.Client.Delete(context.Background(), object); err != nil {
		t.Fatal(err)
	}
}

func isGone(object client.Object) error {
	err := get(object)
	if apierrors.IsNotFound(errors.Unwrap(err)) {
		return nil
	}
	return fmt.Errorf("%T %s is still there: %v", object, object.GetName(), err)
}

func testExtensionRoles(t *testing.T) {
	ctx := context.Background()
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "uroles"}}
	project.Spec.Members = []gardencorev1beta1.ProjectMember{{
		Subject: rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "bob"},
		Role:    gardencorev1beta1.ProjectMemberViewer, Roles: []string{"extension:dns"},
	}}
	create(t, project)
	name := "gardener.cloud:extension:project:uroles:dns"
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-uroles", Name: name}}
	eventually(t, func() error { return errors.Join(get(role), get(binding)) })
	if role.AggregationRule == nil || len(binding.Subjects) != 1 || binding.Subjects[0].Name != "bob" {
		t.Errorf("aggregation %v, subjects %v", role.AggregationRule, binding.Subjects)
	}
	eventually(t, func() error {
		if err := get(project); err != nil {
			return err
		}
		project.Spec.Members = slices.DeleteFunc(project.Spec.Members,
			func(m gardencorev1beta1.ProjectMember) bool { return m.Name == "bob" })
		return env.Client.Update(ctx, project)
	})
	eventually(t, func() error { return errors.Join(isGone(role), isGone(binding)) })
}

func testActivity(t *testing.T) {
	namespace := newProject(t, "uactive")
	create(t, newProfile("uactive"))
	create(t, newShoot(namespace, "member1", "uactive"))
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "uactive"}}
	eventually(t, func() error {
		if err := get(project); err != nil {
			return err
		}
		if project.Status.LastActivityTimestamp == nil {
			return errors.New("the project has no time of its last activity")
		}
		return nil
	})
}

// newTrial gives a project a quota with a lifetime of a day, and a binding that it holds for.
func newTrial(t *testing.T, name string) (namespace string, quota *gardencorev1beta1.Quota,
	binding *securityv1alpha1.CredentialsBinding) {
	t.Helper()
	namespace = newProject(t, name)
	quota = &gardencorev1beta1.Quota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "trial"},
		Spec: gardencorev1beta1.QuotaSpec{
			ClusterLifetimeDays: new(int32(1)), Metrics: corev1.ResourceList{},
			Scope: corev1.ObjectReference{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Project"},
		},
	}
	binding = &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: namespace, Name: "trial"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: namespace, Name: "local"},
		Quotas: []corev1.ObjectReference{
			{APIVersion: "core.gardener.cloud/v1beta1", Kind: "Quota", Namespace: namespace, Name: "trial"},
		},
	}
	create(t, quota, binding)
	return namespace, quota, binding
}

func testQuotaInUse(t *testing.T) {
	ctx := context.Background()
	_, quota, binding := newTrial(t, "uquota")
	eventually(t, func() error {
		if err := get(quota); err != nil {
			return err
		}
		if !slices.Contains(quota.Finalizers, gardencorev1beta1.GardenerName) {
			return fmt.Errorf("finalizers = %v", quota.Finalizers)
		}
		return nil
	})
	if err := env.Client.Delete(ctx, quota); client.IgnoreNotFound(err) != nil && !apierrors.IsForbidden(err) {
		t.Fatal(err)
	}
	if err := get(quota); err != nil {
		t.Fatalf("the quota is gone although a binding uses it: %v", err)
	}
	if err := env.Client.Delete(ctx, binding); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { return isGone(binding) })
	eventually(t, func() error {
		if err := env.Client.Delete(ctx, quota); client.IgnoreNotFound(err) != nil {
			return err
		}
		return isGone(quota)
	})
}

func testNamespacedCloudProfile(t *testing.T) {
	ctx := context.Background()
	namespace := newProject(t, "unscp")
	parent := newProfile("unscp")
	profile := &gardencorev1beta1.NamespacedCloudProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "own"},
		Spec: gardencorev1beta1.NamespacedCloudProfileSpec{
			Parent:       gardencorev1beta1.CloudProfileReference{Kind: "CloudProfile", Name: "unscp"},
			MachineTypes: []gardencorev1beta1.MachineType{*newProfile("").Spec.MachineTypes[0].DeepCopy()},
		},
	}
	profile.Spec.MachineTypes[0].Name = "own"
	create(t, parent, profile)
	machines := func(want string) func() error {
		return func() error {
			if err := get(profile); err != nil {
				return err
			}
			if profile.Status.CloudProfileSpec == nil {
				return errors.New("not merged yet")
			}
			var names []string
			for _, machine := range profile.Status.CloudProfileSpec.MachineTypes {
				names = append(names, machine.Name)
			}
			if got := strings.Join(names, " "); got != want {
				return fmt.Errorf("machine types = %s, want %s", got, want)
			}
			return nil
		}
	}
	eventually(t, machines("local own"))
	eventually(t, func() error {
		if err := get(parent); err != nil {
			return err
		}
		added := *parent.Spec.MachineTypes[0].DeepCopy()
		added.Name = "added"
		parent.Spec.MachineTypes = append(parent.Spec.MachineTypes, added)
		return env.Client.Update(ctx, parent)
	})
	eventually(t, machines("local added own"))

	shoot := newShoot(namespace, "member1", "unscp", func(s *gardencorev1beta1.Shoot) {
		s.Spec.CloudProfile = &gardencorev1beta1.CloudProfileReference{Kind: "NamespacedCloudProfile", Name: "own"}
		s.Spec.Provider.Workers[0].Machine.Type = "own"
	})
	create(t, shoot)
}

func testReferences(t *testing.T) {
	namespace := newProject(t, "uref")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "used"}}
	create(t, newProfile("uref"), secret)
	shoot := newShoot(namespace, "member1", "uref", func(s *gardencorev1beta1.Shoot) {
		s.Spec.Resources = []gardencorev1beta1.NamedResourceReference{
			{
				Name: "used", ResourceRef: autoscalingv1.CrossVersionObjectReference{
					APIVersion: "v1", Kind: "Secret", Name: "used",
				},
			},
		}
	})
	create(t, shoot)
	protected := func(want bool) func() error {
		return func() error {
			if err := get(secret); err != nil {
				return err
			}
			if slices.Contains(secret.Finalizers, gardencorev1beta1.FinalizerReferenceProtection) != want {
				return fmt.Errorf("finalizers = %v, want protection: %t", secret.Finalizers, want)
			}
			return nil
		}
	}
	eventually(t, protected(true))
	deleteConfirmed(t, shoot)
	eventually(t, protected(false))
}

func testStatusLabel(t *testing.T) {
	namespace := newProject(t, "ulabel")
	create(t, newProfile("ulabel"))
	shoot := newShoot(namespace, "member1", "ulabel")
	create(t, shoot)
	finish(t, shoot)
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		if got := shoot.Labels[gardencorev1beta1.LabelShootStatus]; got != "healthy" {
			return fmt.Errorf("label = %q", got)
		}
		return nil
	})
}

// finish writes what a gardenlet would after a reconciliation.
func finish(t *testing.T, shoot *gardencorev1beta1.Shoot) {
	t.Helper()
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		shoot.Status.ObservedGeneration = shoot.Generation
		shoot.Status.LastOperation = &gardencorev1beta1.LastOperation{
			Type: gardencorev1beta1.LastOperationTypeCreate, State: gardencorev1beta1.LastOperationStateSucceeded,
			Progress: 100, LastUpdateTime: metav1.Now(),
		}
		return env.Client.Status().Update(context.Background(), shoot)
	})
}

func testMaintenance(t *testing.T) {
	namespace := newProject(t, "umaint")
	create(t, newProfile("umaint"))
	shoot := newShoot(namespace, "member1", "umaint", func(s *gardencorev1beta1.Shoot) {
		s.Spec.Provider.Workers[0].Machine.Image = &gardencorev1beta1.ShootMachineImage{
			Name: "debian", Version: new("12.11.0"),
		}
	})
	create(t, shoot)
	finish(t, shoot)
	generation := shoot.Generation
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, gardencorev1beta1.GardenerOperation,
			gardencorev1beta1.GardenerOperationMaintain)
		return env.Client.Update(context.Background(), shoot)
	})
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		image, last := shoot.Spec.Provider.Workers[0].Machine.Image, shoot.Status.LastMaintenance
		if *image.Version != "12.12.0" || last == nil {
			return fmt.Errorf("image %s, last maintenance %+v, annotations %v", *image.Version, last, shoot.Annotations)
		}
		return nil
	})
	if last := shoot.Status.LastMaintenance; last.State != gardencorev1beta1.LastOperationStateSucceeded ||
		!strings.Contains(last.Description, "from 12.11.0 to 12.12.0") {
		t.Errorf("last maintenance = %+v", last)
	}
	if shoot.Generation <= generation || shoot.Annotations[gardencorev1beta1.GardenerOperation] != "" {
		t.Errorf("generation %d after %d, annotations %v; want gardenlet to be asked", shoot.Generation, generation,
			shoot.Annotations)
	}
}

func testLifetime(t *testing.T) {
	namespace, _, _ := newTrial(t, "ulife")
	create(t, newProfile("ulife"))
	shoot := newShoot(namespace, "member1", "ulife",
		func(s *gardencorev1beta1.Shoot) { s.Spec.CredentialsBindingName = new("trial") })
	create(t, shoot)
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		expiration, err := time.Parse(time.RFC3339, shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp])
		if err != nil || expiration.Sub(shoot.CreationTimestamp.Time) != 24*time.Hour {
			return fmt.Errorf("created at %s, expires at %s, %v", shoot.CreationTimestamp, expiration, err)
		}
		return nil
	})
	eventually(t, func() error {
		if err := get(shoot); err != nil {
			return err
		}
		shoot.Annotations[gardencorev1beta1.ShootExpirationTimestamp] = time.Now().
			Add(-time.Minute).Format(time.RFC3339)
		return env.Client.Update(context.Background(), shoot)
	})
	eventually(t, func() error { return isGone(shoot) })
}

func testBastion(t *testing.T) {
	namespace := newProject(t, "ubastion")
	create(t, newProfile("ubastion"), newSeed("ubastion", "ubastion"))
	shoot := newShoot(namespace, "member1", "ubastion",
		func(s *gardencorev1beta1.Shoot) { s.Spec.SeedName = new("ubastion") })
	create(t, shoot)
	bastion := &operationsv1alpha1.Bastion{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "door"},
		Spec: operationsv1alpha1.BastionSpec{
			ShootRef:     corev1.LocalObjectReference{Name: "member1"},
			SSHPublicKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUBPSNZiWFyUM5jNx3yAXJn8ZPTOKD0c4uHPx1yDuS3 alice",
			Ingress: []operationsv1alpha1.BastionIngressPolicy{
				{IPBlock: networkingv1.IPBlock{CIDR: "192.0.2.0/24"}},
			},
		},
	}
	create(t, bastion)
	if bastion.Status.ExpirationTimestamp == nil {
		t.Errorf("status = %+v, want it to expire", bastion.Status)
	}
	deleteConfirmed(t, shoot)
	eventually(t, func() error { return isGone(bastion) })
}

func testSeedConditions(t *testing.T) {
	seed := newSeed("ucare", "ucare")
	create(t, seed)
	eventually(t, func() error {
		if err := get(seed); err != nil {
			return err
		}
		for _, condition := range seed.Status.Conditions {
			if condition.Type == gardencorev1beta1.SeedExtensionsReady {
				return nil
			}
		}
		return fmt.Errorf("conditions = %+v, want %s", seed.Status.Conditions, gardencorev1beta1.SeedExtensionsReady)
	})
}

func testManagedSeedSet(t *testing.T) {
	create(t, newProfile("umss"), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "umss"}})
	create(t, &securityv1alpha1.CredentialsBinding{
		ObjectMeta:     metav1.ObjectMeta{Namespace: "garden", Name: "umss"},
		Provider:       securityv1alpha1.CredentialsBindingProvider{Type: "local"},
		CredentialsRef: corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "garden", Name: "umss"},
	})
	tier := map[string]string{"tier": "umss"}
	template := newShoot("", "", "umss", func(s *gardencorev1beta1.Shoot) {
		s.Spec.CredentialsBindingName, s.Spec.Kubernetes.Version = new("umss"), "1.36.3"
		s.Spec.DNS = &gardencorev1beta1.DNS{Domain: new("replica-name.seeds.example")}
	})
	set := &seedmanagementv1alpha1.ManagedSeedSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "umss"},
		Spec: seedmanagementv1alpha1.ManagedSeedSetSpec{
			Selector: metav1.LabelSelector{MatchLabels: tier},
			ShootTemplate: gardencorev1beta1.ShootTemplate{
				ObjectMeta: metav1.ObjectMeta{Labels: tier}, Spec: template.Spec,
			},
			Template: seedmanagementv1alpha1.ManagedSeedTemplate{ObjectMeta: metav1.ObjectMeta{Labels: tier},
				Spec: seedmanagementv1alpha1.ManagedSeedSpec{
					Gardenlet: seedmanagementv1alpha1.GardenletConfig{Config: &runtime.RawExtension{Raw: []byte(`{
					"apiVersion": "gardenlet.config.gardener.cloud/v1alpha1", "kind": "GardenletConfiguration",
					"seedConfig": {"metadata": {"labels": {"tier": "umss"}}, "spec": {
						"provider": {"type": "local", "region": "umss", "zones": ["0"]},
						"networks": {"pods": "100.96.0.0/11", "services": "100.64.0.0/13", "nodes": "10.180.0.0/16"},
						"ingress": {"domain": "ingress.replica-name.seeds.example", "controller": {"kind": "nginx"}},
						"dns": {"internal": {"type": "local", "domain": "internal.example", "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "dns"}}}
					}}}`)}},
				}},
		},
	}
	create(t, set)
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "umss-0"}}
	eventually(t, func() error { return get(shoot) })
	if got := ptr.Deref(shoot.Spec.DNS.Domain, ""); got != "umss-0.seeds.example" {
		t.Errorf("domain = %s", got)
	}
	finish(t, shoot)
	managedSeed := &seedmanagementv1alpha1.ManagedSeed{
		ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "umss-0"},
	}
	eventually(t, func() error {
		if err := get(managedSeed); err != nil {
			return fmt.Errorf("%w; set: %+v", err, errors.Join(get(set), fmt.Errorf("%+v", set.Status)))
		}
		return nil
	})
	deleteConfirmed(t, set)
	eventually(t, func() error { return errors.Join(isGone(managedSeed), isGone(shoot), isGone(set)) })
}
