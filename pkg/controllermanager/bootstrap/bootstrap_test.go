package bootstrap

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/controllermanager/project"
)

func TestEnsureCreatesAndCorrects(t *testing.T) {
	ctx := context.Background()
	old := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: gardencorev1beta1.SeedsGroup}}
	garden := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden", Labels: map[string]string{"mine": "yes"}}}
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(old, garden).Build()
	for range 2 {
		if err := Ensure(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range Objects() {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Errorf("%T: %v", object, err)
		}
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(old), old); err != nil || len(old.Rules) == 0 {
		t.Errorf("an older role was not corrected: %v", err)
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(garden), garden); err != nil {
		t.Fatal(err)
	}
	if garden.Labels["mine"] != "yes" || garden.Labels[gardencorev1beta1.ProjectName] != "garden" {
		t.Errorf("labels of namespace garden = %v", garden.Labels)
	}
}

func TestNoRoleReadsInternalSecrets(t *testing.T) {
	for _, object := range Objects() {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				if resource == "internalsecrets" || resource == "*" {
					t.Errorf("%s may %v %s", role.Name, rule.Verbs, resource)
				}
			}
		}
	}
}

// While a garden is upgraded, a garden-apiserver of before would show all projects to whoever may list them. So nobody
// is given that right before it is confirmed that none is left.
func TestAttackProjectsDuringAnUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		old := clusterRole(gardencorev1beta1.ClusterRoleReadGlobalResources, globalReadRules(false))
		old.Rules[0].Resources = []string{"seeds"}
		c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).WithObjects(old).Build()
		ended := make(chan error, 1)
		go func() { ended <- (&Runnable{Client: c}).Start(ctx) }()
		now := func() *rbacv1.ClusterRole {
			time.Sleep(2 * confirmationPeriod)
			role := &rbacv1.ClusterRole{}
			if err := c.Get(ctx, client.ObjectKeyFromObject(old), role); err != nil {
				t.Fatal(err)
			}
			return role
		}
		role := now()
		if listsProjects(role) || !slices.Contains(role.Rules[0].Resources, "cloudprofiles") {
			t.Errorf("before it is confirmed the rules are %+v", role.Rules)
		}
		metav1.SetMetaDataAnnotation(&role.ObjectMeta, gardencorev1beta1.AnnotationProjectsAreFiltered, "true")
		if err := c.Update(ctx, role); err != nil {
			t.Fatal(err)
		}
		if role := now(); !listsProjects(role) {
			t.Errorf("although it is confirmed the rules are %+v", role.Rules)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		cancel()
	})
}

// What was given stays: a new garden needs no confirmation, and who restarts in an upgraded one takes nothing away.
func TestListsOfProjectsStay(t *testing.T) {
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).Build()
	for range 2 {
		if err := (&Runnable{Client: c}).Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		role := readGlobalResources()
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(role), role); err != nil || !listsProjects(role) {
			t.Errorf("rules are %+v, %v", role.Rules, err)
		}
	}
}

func TestPolicyIsBroughtUpToDate(t *testing.T) {
	wanted := seedRestriction()
	present := seedRestriction()
	present.Spec.Validations[0].Expression = "true"
	present.Spec.MatchConstraints.ResourceRules[0].Resources = []string{"pods"}
	if !bringTo(present, wanted) || present.Spec.Validations[0].Expression != wanted.Spec.Validations[0].Expression ||
		len(present.Spec.MatchConstraints.ResourceRules[0].Resources) != 5 {
		t.Errorf("an older policy was not corrected: %+v", present.Spec)
	}
	present.Spec.MatchConstraints.MatchPolicy = new(admissionregistrationv1.Equivalent)
	if bringTo(present, wanted) {
		t.Error("what the API server defaults is no difference")
	}
}

// The policy for projects' namespaces once was without parameters.
func TestParametersOfAPolicyAreBroughtUpToDate(t *testing.T) {
	policy, binding := projectNamespaces(), denying(projectNamespacesName)
	policy.Spec.ParamKind, policy.Spec.MatchConstraints.ObjectSelector = nil, &metav1.LabelSelector{}
	policy.Spec.MatchConstraints.ResourceRules[0].Operations = []admissionregistrationv1.OperationType{
		admissionregistrationv1.Delete,
	}
	if !bringTo(policy, projectNamespaces()) || !bringTo(binding, projectNamespacesBinding()) {
		t.Error("an older policy and its binding are not corrected")
	}
	if diff := cmp.Diff(projectNamespaces(), policy); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(projectNamespacesBinding(), binding); diff != "" {
		t.Error(diff)
	}
	if bringTo(policy, projectNamespaces()) || bringTo(binding, projectNamespacesBinding()) {
		t.Error("what is as wanted is changed")
	}
}

func TestViewersSeeNoSecrets(t *testing.T) {
	for _, rule := range viewerRules() {
		for _, resource := range rule.Resources {
			if resource == "secrets" || resource == "internalsecrets" || resource == "shoots/adminkubeconfig" {
				t.Errorf("viewers may %v %s", rule.Verbs, resource)
			}
		}
	}
}

// A kind that members of a project may create without a bound would let them fill the garden's etcd.
func TestWhatMembersCreateIsBounded(t *testing.T) {
	bounded := project.DefaultQuotas()[0].Config.Spec.Hard
	for _, rule := range slices.Concat(memberRules(), serviceAccountManagerRules()) {
		if !slices.Contains(rule.Verbs, "create") {
			continue
		}
		for _, resource := range rule.Resources {
			if strings.Contains(resource, "/") { // is not stored
				continue
			}
			name := "count/" + schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}.String()
			if _, ok := bounded[corev1.ResourceName(name)]; !ok {
				t.Errorf("members create %s, and the default quota of projects has no %s", resource, name)
			}
		}
	}
}
