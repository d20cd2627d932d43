package project

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func newProject() *gardencorev1beta1.Project {
	subject := func(name string) rbacv1.Subject {
		return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
	}
	return &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "demo", Finalizers: []string{gardencorev1beta1.GardenerName}},
		Spec: gardencorev1beta1.ProjectSpec{Members: []gardencorev1beta1.ProjectMember{
			{
				Subject: subject("alice"), Role: gardencorev1beta1.ProjectMemberAdmin,
				Roles: []string{gardencorev1beta1.ProjectMemberOwner},
			},
			{
				Subject: subject("bob"), Role: gardencorev1beta1.ProjectMemberViewer,
				Roles: []string{gardencorev1beta1.ProjectMemberUserAccessManager},
			},
			{Subject: subject("carol"), Role: gardencorev1beta1.ProjectMemberServiceAccountManager},
			{Subject: subject("dave"), Role: gardencorev1beta1.ProjectMemberAdmin},
		}},
	}
}

func newReconciler(objects ...client.Object) *Reconciler {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []string{"Secret", "ConfigMap", "ServiceAccount"} {
		mapper.Add(corev1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	c := fake.NewClientBuilder().WithScheme(apis.GardenScheme()).
		WithRESTMapper(mapper).WithObjects(objects...).WithStatusSubresource(&gardencorev1beta1.Project{},
		&corev1.ResourceQuota{}).Build()
	return &Reconciler{Client: c, Uncached: c}
}

func reconcileDemo(t *testing.T, r *Reconciler) (reconcile.Result, error) {
	t.Helper()
	return r.Reconcile(context.Background(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "demo"}})
}

func TestNewProject(t *testing.T) {
	ctx := context.Background()
	r := newReconciler(newProject())
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	namespace, project := &corev1.Namespace{}, &gardencorev1beta1.Project{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "garden-demo"}, namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.Labels[gardencorev1beta1.ProjectName] != "demo" ||
		namespace.Labels[gardencorev1beta1.GardenRole] != gardencorev1beta1.GardenRoleProject {
		t.Errorf("labels of the namespace = %v", namespace.Labels)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "demo"}, project); err != nil {
		t.Fatal(err)
	}
	if ptr.Deref(project.Spec.Namespace, "") != "garden-demo" ||
		project.Status.Phase != gardencorev1beta1.ProjectReady {
		t.Errorf("namespace %v, phase %q", project.Spec.Namespace, project.Status.Phase)
	}
}

func TestRolesFollowMembers(t *testing.T) {
	users := map[string]string{}
	for _, object := range Access(newProject()) {
		var subjects []rbacv1.Subject
		switch binding := object.(type) {
		case *rbacv1.ClusterRoleBinding:
			subjects = binding.Subjects
		case *rbacv1.RoleBinding:
			subjects = binding.Subjects
		default:
			continue
		}
		var names []string
		for _, subject := range subjects {
			names = append(names, subject.Name)
		}
		users[object.GetName()] = strings.Join(names, ",")
	}
	want := map[string]string{
		"gardener.cloud:system:project:demo":        "alice",
		"gardener.cloud:system:project-member:demo": "alice,dave",
		"gardener.cloud:system:project-viewer:demo": "bob,carol",
		"gardener.cloud:system:project-uam:demo":    "bob",
		MemberRole:                                  "alice,dave",
		ViewerRole:                                  "bob",
		ServiceAccountManagerRole:                   "alice,carol",
	}
	if len(users) != len(want) {
		t.Errorf("bindings = %v, want %v", users, want)
	}
	for name, members := range want {
		if users[name] != members {
			t.Errorf("members of %s = %q, want %q", name, users[name], members)
		}
	}
}

func TestMembersThatLeaveLoseTheirRights(t *testing.T) {
	ctx := context.Background()
	r := newReconciler(newProject())
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	project := &gardencorev1beta1.Project{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "demo"}, project); err != nil {
		t.Fatal(err)
	}
	project.Spec.Members = project.Spec.Members[:1]
	if err := r.Client.Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	viewers := &rbacv1.RoleBinding{}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: "garden-demo", Name: ViewerRole}, viewers); err != nil {
		t.Fatal(err)
	}
	if len(viewers.Subjects) != 0 {
		t.Errorf("viewers = %v, want none", viewers.Subjects)
	}
}

func TestForeignNamespaceIsNotTaken(t *testing.T) {
	r := newReconciler(newProject(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "garden-demo"}})
	_, err := reconcileDemo(t, r)
	if err == nil || !strings.Contains(err.Error(), "project.gardener.cloud/name=demo") {
		t.Errorf("error = %v, want it to name the missing label", err)
	}
	project := &gardencorev1beta1.Project{}
	if err := r.Client.Get(context.Background(), client.ObjectKey{Name: "demo"}, project); err != nil {
		t.Fatal(err)
	}
	if project.Status.Phase != gardencorev1beta1.ProjectFailed {
		t.Errorf("phase = %q, want Failed", project.Status.Phase)
	}
}

func TestDeletionWaitsForShoots(t *testing.T) {
	ctx := context.Background()
	shoot := &gardencorev1beta1.Shoot{ObjectMeta: metav1.ObjectMeta{Namespace: "garden-demo", Name: "member1"}}
	r := newReconciler(newProject(), shoot)
	if _, err := reconcileDemo(t, r); err != nil {
		t.Fatal(err)
	}
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
	if err := r.Client.Delete(ctx, project); err != nil {
		t.Fatal(err)
	}
	if result, err := reconcileDemo(t, r); err != nil || result.RequeueAfter == 0 {
		t.Fatalf("result = %+v, %v; want it to come back", result, err)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "garden-demo"}, &corev1.Namespace{}); err != nil {
		t.Errorf("the namespace went before the shoot: %v", err)
	}

	if err := r.Client.Delete(ctx, shoot); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the namespace, then the roles, then the project
		if _, err := reconcileDemo(t, r); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "demo"}, project); !apierrors.IsNotFound(err) {
		t.Errorf("project: %v, want it to be gone", err)
	}
	roles := &rbacv1.ClusterRoleList{}
	if err := r.Client.List(ctx, roles); err != nil || len(roles.Items) > 0 {
		t.Errorf("cluster roles = %v, %v; want none", roles.Items, err)
	}
}

func TestRolesOfExtensions(t *testing.T) {
	ctx := context.Background()
	project := newProject()
	project.Spec.Members[1].Roles = append(project.Spec.Members[1].Roles, "extension:dns")
	project.Spec.Members[2].Role = "extension:dns"
	project.Spec.Members[2].Roles = []string{"extension:audit"}
	r := newReconciler(project)
	reconcileOnce := func() {
		t.Helper()
		if _, err := reconcileDemo(t, r); err != nil {
			t.Fatal(err)
		}
	}
	reconcileOnce()
	role, binding := &rbacv1.ClusterRole{}, &rbacv1.RoleBinding{}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "gardener.cloud:extension:project:demo:dns"}, role); err != nil {
		t.Fatal(err)
	}
	if rule := role.AggregationRule; rule == nil ||
		rule.ClusterRoleSelectors[0].MatchLabels["rbac.gardener.cloud/aggregate-to-extension-role"] != "dns" {
		t.Errorf("aggregation = %+v", rule)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Namespace: "garden-demo", Name: role.Name}, binding); err != nil {
		t.Fatal(err)
	}
	if len(binding.Subjects) != 2 || binding.Subjects[0].Name != "bob" || binding.Subjects[1].Name != "carol" {
		t.Errorf("subjects = %v, want bob and carol", binding.Subjects)
	}

	// Rules that Kubernetes aggregated stay; roles that nobody has any more go.
	role.Rules = []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"dns.example"}, Resources: []string{"zones"}},
	}
	if err := r.Client.Update(ctx, role); err != nil {
		t.Fatal(err)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "demo"}, project); err != nil {
		t.Fatal(err)
	}
	project.Spec.Members[2].Roles = nil
	if err := r.Client.Update(ctx, project); err != nil {
		t.Fatal(err)
	}
	reconcileOnce()
	if err := r.Client.Get(ctx, client.ObjectKeyFromObject(role), role); err != nil || len(role.Rules) != 1 {
		t.Errorf("rules = %v, %v; want those that Kubernetes wrote", role.Rules, err)
	}
	if err := r.Client.Get(ctx, client.ObjectKey{Name: "gardener.cloud:extension:project:demo:audit"},
		role); !apierrors.IsNotFound(err) {
		t.Errorf("role without members: %v, want it to be gone", err)
	}
}
