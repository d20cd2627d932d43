package bootstrap

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// confirmationPeriod is how often it is looked whether everybody may be let list projects.
const confirmationPeriod = 10 * time.Second

func readGlobalResources() *rbacv1.ClusterRole {
	return clusterRole(gardencorev1beta1.ClusterRoleReadGlobalResources, globalReadRules(true))
}

// heldBack returns the rules that a role is to have now. In a garden of before, the right to list projects is not given
// until somebody confirms that no garden-apiserver is left that would show all of them. A new garden never had one:
// there the role is made with that right.
func heldBack(present, wanted *rbacv1.ClusterRole) []rbacv1.PolicyRule {
	if wanted.Name != gardencorev1beta1.ClusterRoleReadGlobalResources || listsProjects(present) ||
		present.Annotations[gardencorev1beta1.AnnotationProjectsAreFiltered] == "true" {
		return wanted.Rules
	}
	return globalReadRules(false)
}

func listsProjects(role *rbacv1.ClusterRole) bool {
	return slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
		return slices.Contains(rule.Resources, "projects") && slices.Contains(rule.Verbs, "list")
	})
}

// giveLists waits until everybody has the right to list projects, and gives it when that is confirmed.
func (r *Runnable) giveLists(ctx context.Context, log logr.Logger) error {
	told := false
	return wait.PollUntilContextCancel(ctx, confirmationPeriod, true, func(ctx context.Context) (bool, error) {
		role := readGlobalResources()
		if err := ensure(ctx, r.Client, role); err != nil {
			log.Error(err, "Cannot look after a role, trying again", "role", role.Name, "after", confirmationPeriod)
			return false, nil
		}
		if err := r.Client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		if listsProjects(role) {
			return true, nil
		}
		if !told {
			log.Info("Nobody but operators lists projects: annotate the role when all replicas of garden-apiserver "+
				"are of this version", "role", role.Name,
				"annotation", gardencorev1beta1.AnnotationProjectsAreFiltered+"=true")
		}
		told = true
		return false, nil
	})
}
