package kills

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	extensionsv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/extensions/v1alpha1"
	securityv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/security/v1alpha1"
	"github.com/trellis-garden/trellis/pkg/gardenlet/extensionrights"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan"
	"github.com/trellis-garden/trellis/pkg/gardenlet/shoot/plan/plantest"
)

const (
	projectName, shootName = "demo", "one"
	gardenNamespace        = "garden-demo"
	seedName               = "local"
)

// restoredTime is the time whose state of etcd-main is restored.
const restoredTime = "2026-01-01T12:00:00Z"

// technicalID is the namespace of the control plane.
var technicalID = gardencorev1beta1.TechnicalID(projectName, shootName)

// shootKey is where the Shoot is.
var shootKey = client.ObjectKey{Namespace: gardenNamespace, Name: shootName}

// scenario is an operation. It begins after another one, or in a garden and a seed without a shoot.
type scenario struct {
	name  string
	after string
	begin func(context.Context, *world) error
}

// scenarios are all operations whose flows differ, in the order in which they are run.
var scenarios = []scenario{
	{name: "creation", begin: creation()},
	{name: "reconciliation", after: "creation", begin: change(withPurpose)},
	{name: "growth to three members", after: "creation", begin: change(highlyAvailable)},
	{name: "start of a rotation", after: "creation", begin: change(operation("rotate-credentials-start"))},
	{
		name: "end of a rotation", after: "start of a rotation",
		begin: change(operation("rotate-credentials-complete")),
	},
	{name: "falling asleep", after: "creation", begin: change(asleep(true))},
	{name: "reconciliation in sleep", after: "falling asleep", begin: change(withPurpose)},
	{name: "waking up", after: "falling asleep", begin: change(asleep(false))},
	{name: "deletion", after: "creation", begin: deletion(usersObjects)},
	{name: "deletion in sleep", after: "falling asleep", begin: deletion()},
	{name: "creation with backups", begin: creation(plantest.BackedUp)},
	{
		name: "restore to a point in time", after: "creation with backups",
		begin: change(operation("restore-etcd=" + restoredTime)),
	},
	{name: "restore on another seed", after: "creation with backups", begin: seedIsLost},
	{name: "deletion with backups", after: "creation with backups", begin: deletion()},
	{name: "creation of a fleet", begin: creation(plantest.Workerless)},
	{name: "fleet falling asleep", after: "creation of a fleet", begin: change(asleep(true))},
	{name: "fleet waking up", after: "fleet falling asleep", begin: change(asleep(false))},
	{name: "deletion of a fleet", after: "creation of a fleet", begin: deletion()},
}

// creation makes what garden and seed have before there is a shoot, and the Shoot.
func creation(changes ...func(*plan.Inputs)) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		in := plantest.Inputs()
		for _, change := range changes {
			change(in)
		}
		for _, object := range gardenOf(in) {
			if err := w.gardenClient.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T %s in the garden: %w", object, object.GetName(), err)
			}
		}
		for _, object := range []client.Object{
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenNamespace}},
			roleOf("fake", "", "Infrastructure/local,ControlPlane/local,Worker/local"),
			roleOf("fake-machines", "machines-", "Worker/local"),
		} {
			if err := w.seedClient.Create(ctx, object); err != nil {
				return fmt.Errorf("creating %T %s in the seed: %w", object, object.GetName(), err)
			}
		}
		return nil
	}
}

// gardenOf are the objects of a garden with these inputs.
func gardenOf(in *plan.Inputs) []client.Object {
	in.Shoot.Name, in.Shoot.ResourceVersion = shootName, ""
	in.CloudProfile.Name, in.Shoot.Spec.CloudProfileName = "local", new("local")
	objects := []client.Object{
		&corev1.Namespace{
			ObjectMeta: metav1.ObjectMeta{
				Name: gardenNamespace, Labels: map[string]string{gardencorev1beta1.ProjectName: projectName},
			},
		},
		in.Seed, in.CloudProfile, in.Shoot,
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "garden", Name: "dns"}},
	}
	if in.Credentials != nil {
		objects = append(objects,
			&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: in.Credentials.Namespace, Name: in.Credentials.Name},
				Data:       map[string][]byte{"user": []byte("u")},
			},
			&securityv1alpha1.CredentialsBinding{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: gardenNamespace, Name: *in.Shoot.Spec.CredentialsBindingName,
				},
				CredentialsRef: *in.Credentials,
			})
	}
	for i := range in.Registrations {
		in.Registrations[i].Name = fmt.Sprintf("registration-%d", i)
		objects = append(objects, &in.Registrations[i])
	}
	return objects
}

// roleOf is a ClusterRole of an extension that gardenlet binds in the namespaces of shoots.
func roleOf(name, prefix, serves string) *rbacv1.ClusterRole {
	annotations := map[string]string{
		extensionsv1alpha1.AnnotationRoleResources: serves, extensionsv1alpha1.AnnotationRoleServiceAccount: "fake",
	}
	if prefix != "" {
		annotations[extensionsv1alpha1.AnnotationRoleNamespacePrefix] = prefix
	}
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{
		Name: name, Annotations: annotations, Labels: map[string]string{extensionrights.LabelRegistration: "fake"},
	}}
}

// change changes the Shoot.
func change(how func(*gardencorev1beta1.Shoot)) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		shoot := &gardencorev1beta1.Shoot{}
		if err := w.gardenClient.Get(ctx, shootKey, shoot); err != nil {
			return err
		}
		how(shoot)
		return w.gardenClient.Update(ctx, shoot)
	}
}

func withPurpose(shoot *gardencorev1beta1.Shoot) {
	shoot.Spec.Purpose = new(gardencorev1beta1.ShootPurposeProduction)
}

func highlyAvailable(shoot *gardencorev1beta1.Shoot) {
	shoot.Spec.ControlPlane = &gardencorev1beta1.ControlPlane{HighAvailability: &gardencorev1beta1.HighAvailability{
		FailureTolerance: gardencorev1beta1.FailureTolerance{Type: gardencorev1beta1.FailureToleranceTypeNode},
	}}
}

func asleep(wanted bool) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		shoot.Spec.Hibernation = &gardencorev1beta1.Hibernation{Enabled: &wanted}
	}
}

func operation(name string) func(*gardencorev1beta1.Shoot) {
	return func(shoot *gardencorev1beta1.Shoot) {
		metav1.SetMetaDataAnnotation(&shoot.ObjectMeta, gardencorev1beta1.GardenerOperation, name)
	}
}

// deletion deletes the Shoot, after other changes.
func deletion(before ...func(*world)) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		for _, do := range before {
			do(w)
		}
		return w.gardenClient.Delete(ctx, &gardencorev1beta1.Shoot{
			ObjectMeta: metav1.ObjectMeta{Namespace: shootKey.Namespace, Name: shootKey.Name},
		})
	}
}

// usersObjects puts what is to be cleaned up into the shoot.
func usersObjects(w *world) {
	w.lock.Lock()
	defer w.lock.Unlock()
	for _, at := range []path{
		{"/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "", "hook"},
		{"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "", "things.example.com"},
		{"/apis/apps/v1", "deployments", "default", "web"},
		{"/apis/apiregistration.k8s.io/v1", "apiservices", "", "v1beta1.metrics.k8s.io"},
		{"/api/v1", "namespaces", "", "app"},
	} {
		metadata := object{"name": at.name}
		if slices.Contains(inNamespaces, at.resource) {
			metadata["namespace"] = at.namespace
		}
		w.cluster.put(at, object{
			"kind": kinds[at.version][at.resource], "apiVersion": groupVersion(at.version), "metadata": metadata,
		})
	}
}
