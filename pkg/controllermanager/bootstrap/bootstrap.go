// Package bootstrap creates what every garden has: its namespaces, the rights of gardenlets and of project members, and
// the project "garden" of the operators.
package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
)

// retryPeriod is how soon to try again, e.g. while the garden's API is still starting.
const retryPeriod = 2 * time.Second

// Runnable applies the objects when the manager starts, and tries until all are there.
type Runnable struct {
	Client client.Client
}

// Start implements manager.Runnable.
func (r *Runnable) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("bootstrap")
	err := wait.PollUntilContextCancel(ctx, retryPeriod, true, func(ctx context.Context) (bool, error) {
		if err := Ensure(ctx, r.Client); err != nil {
			log.Error(err, "Cannot create what every garden has, trying again", "after", retryPeriod)
			return false, nil
		}
		return true, nil
	})
	if err == nil {
		err = r.giveLists(ctx, log)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// Ensure creates the objects that are missing and corrects roles that differ.
func Ensure(ctx context.Context, c client.Client) error {
	var errs []error
	for _, object := range Objects() {
		if err := ensure(ctx, c, object); err != nil {
			errs = append(errs, fmt.Errorf("%T %s: %w", object, client.ObjectKeyFromObject(object), err))
		}
	}
	return errors.Join(errs...)
}

func ensure(ctx context.Context, c client.Client, wanted client.Object) error {
	present := wanted.DeepCopyObject().(client.Object)
	err := c.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	if apierrors.IsNotFound(err) {
		return client.IgnoreAlreadyExists(c.Create(ctx, wanted))
	}
	if err != nil {
		return err
	}
	updated := present.DeepCopyObject().(client.Object)
	if !bringTo(updated, wanted) {
		return nil
	}
	return c.Update(ctx, updated)
}

// bringTo changes what an older version of Trellis may have created differently, and tells whether that was needed.
func bringTo(present, wanted client.Object) bool {
	before := present.DeepCopyObject()
	switch present := present.(type) {
	case *corev1.Namespace:
		if present.Labels == nil {
			present.Labels = map[string]string{}
		}
		for key, value := range wanted.GetLabels() {
			present.Labels[key] = value
		}
	case *rbacv1.ClusterRole:
		bringRoleTo(present, wanted.(*rbacv1.ClusterRole))
	case *admissionregistrationv1.ValidatingAdmissionPolicy:
		bringPolicyTo(&present.Spec, &wanted.(*admissionregistrationv1.ValidatingAdmissionPolicy).Spec)
	case *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		present.Spec.ParamRef = wanted.(*admissionregistrationv1.ValidatingAdmissionPolicyBinding).Spec.ParamRef
	case *rbacv1.ClusterRoleBinding:
		present.Subjects = wanted.(*rbacv1.ClusterRoleBinding).Subjects
	}
	return !apiequality.Semantic.DeepEqual(before, present)
}

// Objects returns everything, in order.
func Objects() []client.Object {
	return slices.Concat([]client.Object{
		namespace(gardencorev1beta1.GardenNamespace, map[string]string{
			gardencorev1beta1.GardenRole:  gardencorev1beta1.GardenRoleProject,
			gardencorev1beta1.ProjectName: gardencorev1beta1.GardenNamespace,
		}),
		namespace(gardencorev1beta1.GardenerSeedLeaseNamespace, nil),
		clusterRole(gardencorev1beta1.SeedsGroup, seedRules()),
		groupBinding(gardencorev1beta1.SeedsGroup, gardencorev1beta1.SeedsGroup, gardencorev1beta1.SeedsGroup),
		seedRestriction(),
		denying(seedRestrictionName),
		accountTokens(),
		denying(accountTokensName),
		projectNamespaces(),
		projectNamespacesBinding(),
		clusterRole("gardener.cloud:system:seed-bootstrapper", bootstrapperRules()),
		groupBinding("gardener.cloud:system:seed-bootstrapper", "gardener.cloud:system:seed-bootstrapper",
			"system:bootstrappers"),
		// Those of managed seeds whose bootstrap is ServiceAccount. What they are granted is decided by their names.
		groupBinding("gardener.cloud:system:seed-bootstrapper:service-accounts",
			"gardener.cloud:system:seed-bootstrapper", "system:serviceaccounts:"+gardencorev1beta1.GardenNamespace),
		readGlobalResources(),
		groupBinding(gardencorev1beta1.ClusterRoleReadGlobalResources, gardencorev1beta1.ClusterRoleReadGlobalResources,
			"system:authenticated"),
	}, roles(), []client.Object{gardenProject()})
}

// roles returns the roles of people: those of projects' members, and those of operators, which include them.
func roles() []client.Object {
	members := slices.Concat(memberRules(), serviceAccountManagerRules())
	return slices.Concat(
		extensible(project.MemberRole, roleOfMembers, memberRules()),
		extensible(project.ViewerRole, roleOfViewers, viewerRules()),
		extensible(project.ServiceAccountManagerRole, roleOfAccounts, serviceAccountManagerRules()),
		operators(administratorsRole, partOfAdministrators, administratorRules(), members, roleOfMembers,
			roleOfAccounts),
		operators(auditorsRole, partOfAuditors, auditorRules(), viewerRules(), roleOfViewers),
	)
}

func namespace(name string, labels map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
}

func clusterRole(name string, rules []rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
}

func groupBinding(name, role, group string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: group}},
	}
}

// gardenProject is the project of the operators: shoots in it may become seeds.
func gardenProject() *gardencorev1beta1.Project {
	return &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.GardenNamespace},
		Spec: gardencorev1beta1.ProjectSpec{
			Namespace:   new(gardencorev1beta1.GardenNamespace),
			Description: new("Clusters of the operators of this garden"),
		},
	}
}
