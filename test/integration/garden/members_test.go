package garden

import (
	"context"
	"fmt"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trellis-garden/trellis/pkg/apis"
	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// watcherFor returns a client that authenticates as a user and can watch.
func watcherFor(t *testing.T, server, name string, groups ...string) client.WithWatch {
	t.Helper()
	config, err := env.ConfigFor(server, name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.NewWithWatch(config, client.Options{Scheme: apis.GardenScheme()})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// foundProject creates a project of an owner with members.
func foundProject(t *testing.T, name, owner string,
	members ...gardencorev1beta1.ProjectMember) *gardencorev1beta1.Project {
	t.Helper()
	subject := userSubject(owner)
	project := &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       gardencorev1beta1.ProjectSpec{Owner: &subject, Members: members},
	}
	create(t, project)
	return project
}

// projectsOf lists what somebody sees, by name.
func projectsOf(c client.Reader, options ...client.ListOption) ([]string, error) {
	list := &gardencorev1beta1.ProjectList{}
	if err := c.List(context.Background(), list, options...); err != nil {
		return nil, err
	}
	var names []string
	for _, project := range list.Items {
		names = append(names, project.Name)
	}
	slices.Sort(names)
	return names, nil
}

// awaitProjects waits until everybody may list projects, and somebody sees some.
func awaitProjects(t *testing.T, c client.Reader, want ...string) {
	t.Helper()
	eventually(t, func() error {
		if got, err := projectsOf(c); err != nil || !slices.Equal(got, want) {
			return fmt.Errorf("got %v, want %v (%v)", got, want, err)
		}
		return nil
	})
}

// TestMembersFindTheirProjects has members of all sorts list and watch projects.
func TestMembersFindTheirProjects(t *testing.T) {
	startControllerManager(t)
	bindOperators(t)
	viewer := func(kind, namespace, name string) gardencorev1beta1.ProjectMember {
		return gardencorev1beta1.ProjectMember{
			Subject: rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name},
			Role:    gardencorev1beta1.ProjectMemberViewer,
		}
	}
	foundProject(t, "find-one", "find-alice", viewer("Group", "", "find-team"))
	foundProject(t, "find-two", "find-bob", viewer("User", "", "find-alice"), viewer("Group", "", "find-team"),
		viewer("ServiceAccount", "garden-find-one", "robot"))
	for _, test := range []struct {
		user   string
		groups []string
		want   []string
	}{
		{"find-alice", nil, []string{"find-one", "find-two"}},
		{"find-bob", nil, []string{"find-two"}},
		{"find-carol", []string{"find-team"}, []string{"find-one", "find-two"}},
		{"system:serviceaccount:garden-find-one:robot", nil, []string{"find-two"}},
		{"find-stranger", []string{"find-alice"}, nil},
	} {
		awaitProjects(t, watcherFor(t, env.Config.Host, test.user, test.groups...), test.want...)
	}
	t.Run("who may list all", whoSeesAllProjects)
	t.Run("watch", watchMembership)
}

// whoSeesAllProjects are those with a right of their own, among them what collects garbage and what schedules.
func whoSeesAllProjects(t *testing.T) {
	for _, name := range []string{
		"operator", "auditor", "system:kube-controller-manager", gardencorev1beta1.GardenSchedulerUser,
		gardencorev1beta1.GardenControllerManagerUser,
	} {
		c := watcherFor(t, env.Config.Host, name)
		eventually(t, func() error {
			got, err := projectsOf(c)
			if err != nil || !slices.Contains(got, "find-one") || !slices.Contains(got, "garden") {
				return fmt.Errorf("%s sees %v (%v)", name, got, err)
			}
			return nil
		})
		list := &gardencorev1beta1.ProjectList{}
		if err := c.List(context.Background(), list, client.Limit(1)); err != nil || list.Continue == "" {
			t.Errorf("%s gets no pages: %v", name, err)
		}
	}
}

// changeMembers writes the members of a project until nobody else did so at the same time.
func changeMembers(t *testing.T, name string, change func(*gardencorev1beta1.ProjectSpec)) {
	t.Helper()
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
	eventually(t, func() error {
		if err := get(project); err != nil {
			return err
		}
		change(&project.Spec)
		return env.Client.Update(context.Background(), project)
	})
}

func addMember(name string) func(*gardencorev1beta1.ProjectSpec) {
	return func(spec *gardencorev1beta1.ProjectSpec) {
		spec.Members = append(spec.Members, gardencorev1beta1.ProjectMember{
			Subject: userSubject(name), Role: gardencorev1beta1.ProjectMemberViewer,
		})
	}
}

func removeMember(name string) func(*gardencorev1beta1.ProjectSpec) {
	return func(spec *gardencorev1beta1.ProjectSpec) {
		spec.Members = slices.DeleteFunc(spec.Members,
			func(member gardencorev1beta1.ProjectMember) bool { return member.Name == name })
	}
}

// watchMembership has a project appear to a new member, change, disappear when they are none any more, and come again.
func watchMembership(t *testing.T) {
	dave := watcherFor(t, env.Config.Host, "find-dave")
	awaitProjects(t, dave)
	ctx, cancel := context.WithTimeout(context.Background(), environment.Patience)
	defer cancel()
	watcher, err := dave.Watch(ctx, &gardencorev1beta1.ProjectList{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	changeMembers(t, "find-one", addMember("find-dave"))
	awaitEvent(t, watcher, watch.Added, "find-one", "")
	changeMembers(t, "find-one", func(spec *gardencorev1beta1.ProjectSpec) { spec.Purpose = new("seen") })
	awaitEvent(t, watcher, watch.Modified, "find-one", "seen")
	changeMembers(t, "find-one", removeMember("find-dave"))
	awaitEvent(t, watcher, watch.Deleted, "find-one", "seen")
	changeMembers(t, "find-one", func(spec *gardencorev1beta1.ProjectSpec) { spec.Purpose = new("not seen") })
	changeMembers(t, "find-two", addMember("find-dave"))
	awaitEvent(t, watcher, watch.Added, "find-two", "")
	awaitProjects(t, dave, "find-two")
	eventually(t, func() error { return untilForbidden(dave, "find-one") })
}

// untilForbidden fails as long as somebody gets a project: bindings are changed by a controller.
func untilForbidden(c client.Reader, name string) error {
	err := c.Get(context.Background(), client.ObjectKey{Name: name}, &gardencorev1beta1.Project{})
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("get project %s: %v, want forbidden", name, err)
	}
	return nil
}

// awaitEvent reads events until the wanted one, and fails on one about another project, or that is of another type than
// a change by a controller.
func awaitEvent(t *testing.T, watcher watch.Interface, want watch.EventType, name, purpose string) {
	t.Helper()
	for event := range watcher.ResultChan() {
		project, ok := event.Object.(*gardencorev1beta1.Project)
		if !ok {
			t.Fatalf("event %+v", event)
		}
		if project.Name != name {
			t.Fatalf("an event about %s, want only about %s", project.Name, name)
		}
		seen := ""
		if project.Spec.Purpose != nil {
			seen = *project.Spec.Purpose
		}
		if event.Type == want && seen == purpose {
			return
		}
		if event.Type != watch.Modified {
			t.Fatalf("%s is %s with purpose %q, want %s with %q", name, event.Type, seen, want, purpose)
		}
	}
	t.Fatalf("the watch ended before %s was %s", name, want)
}
