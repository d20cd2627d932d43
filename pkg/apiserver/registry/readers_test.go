package registry

import (
	"context"
	"errors"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternalversion "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

func subject(kind, namespace, name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: kind, Namespace: namespace, Name: name}
}

func projectOf(members ...gardencorev1beta1.ProjectMember) *gardencorev1beta1.Project {
	owner := subject(rbacv1.UserKind, "", "owner")
	return &gardencorev1beta1.Project{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"},
		Spec:       gardencorev1beta1.ProjectSpec{Owner: &owner, Members: members, Namespace: new("garden-demo")},
	}
}

func TestWhoReadsAProject(t *testing.T) {
	member := func(kind, namespace, name, role string, roles ...string) gardencorev1beta1.ProjectMember {
		return gardencorev1beta1.ProjectMember{Subject: subject(kind, namespace, name), Role: role, Roles: roles}
	}
	project := projectOf(
		member("User", "", "viewer", "viewer"), member("User", "", "uam", "uam"),
		member("Group", "", "team", "admin"), member("ServiceAccount", "garden-demo", "robot", "viewer"),
		member("User", "", "extension", "extension:reader"),
		member("User", "", "both", "extension:reader", "serviceaccountmanager"),
		member("User", "", "spoofs\"\nGroup \"strangers", "viewer"), member("Robot", "", "unknown", "viewer"),
	)
	kind := projects().(*Kind[*gardencorev1beta1.Project])
	_, set, err := kind.attributes(project)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		groups []string
		want   bool
	}{
		{"owner", nil, true}, {"viewer", nil, true}, {"uam", nil, true}, {"both", nil, true},
		{"somebody", []string{"others", "team"}, true}, {"system:serviceaccount:garden-demo:robot", nil, true},
		{"extension", nil, false}, {"team", nil, false}, {"stranger", []string{"viewer", "strangers"}, false},
		{"robot", nil, false}, {"view", nil, false}, {"unknown", []string{"unknown"}, false}, {"", []string{""}, false},
	} {
		selector := readerSelector(namesOf(&user.DefaultInfo{Name: test.name, Groups: test.groups}))
		if got := selector.Matches(set); got != test.want {
			t.Errorf("%q in %v reads the project: %v, want %v", test.name, test.groups, got, test.want)
		}
	}
}

// rightsOf lets users list who have it by their name, or by a group of theirs.
func rightsOf(names ...string) authorizer.AuthorizerFunc {
	return func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser().GetName() == "broken" {
			return authorizer.DecisionNoOpinion, "", errors.New("no answer")
		}
		if slices.ContainsFunc(append([]string{a.GetUser().GetName()}, a.GetUser().GetGroups()...),
			func(name string) bool { return slices.Contains(names, name) }) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	}
}

func TestListsAreRestricted(t *testing.T) {
	rest := &readersREST{
		resource:   gardencorev1beta1.Resource("projects"),
		authorizer: rightsOf("operator", "operators", user.AllAuthenticated),
	}
	demo := fields.Set{"metadata.name": "demo", readersField: readersOf([]rbacv1.Subject{subject("User", "", "alice")})}
	paged := metainternalversion.ListOptions{Limit: 1}
	named := metainternalversion.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", "other")}
	for name, test := range map[string]struct {
		user    user.DefaultInfo
		options metainternalversion.ListOptions
		sees    bool
		limit   int64
		refused func(error) bool
	}{
		"a member":              {user: user.DefaultInfo{Name: "alice"}, sees: true},
		"a member, by pages":    {user: user.DefaultInfo{Name: "alice"}, options: paged, sees: true},
		"a member, another one": {user: user.DefaultInfo{Name: "alice"}, options: named},
		"a stranger":            {user: user.DefaultInfo{Name: "mallory"}},
		"an operator":           {user: user.DefaultInfo{Name: "operator"}, options: paged, sees: true, limit: 1},
		"of operators":          {user: user.DefaultInfo{Name: "x", Groups: []string{"operators"}}, sees: true},
		"a token of more": {
			user:    user.DefaultInfo{Name: "mallory"},
			options: metainternalversion.ListOptions{Continue: "forged"}, refused: apierrors.IsResourceExpired,
		},
		"of the past": {
			user: user.DefaultInfo{Name: "mallory"}, options: metainternalversion.ListOptions{
				ResourceVersion: "1", ResourceVersionMatch: metav1.ResourceVersionMatchExact,
			}, refused: apierrors.IsResourceExpired,
		},
		"nobody knows": {user: user.DefaultInfo{Name: "broken"}, refused: apierrors.IsInternalError},
		"a gardenlet": {
			user: user.DefaultInfo{
				Name: gardencorev1beta1.SeedUserNamePrefix + "s", Groups: []string{gardencorev1beta1.SeedsGroup},
			}, refused: apierrors.IsForbidden,
		},
		"an extension": {
			user: user.DefaultInfo{Name: "system:serviceaccount:seed-s:extension"}, refused: apierrors.IsForbidden,
		},
	} {
		test.user.Groups = append(test.user.Groups, user.AllAuthenticated)
		ctx := apirequest.WithUser(apirequest.WithRequestInfo(context.Background(),
			&apirequest.RequestInfo{IsResourceRequest: true, Verb: "list", Resource: "projects"}), &test.user)
		restricted, err := rest.restrict(ctx, &test.options)
		if test.refused != nil {
			if !test.refused(err) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		sees := restricted.FieldSelector == nil || restricted.FieldSelector.Matches(demo)
		if sees != test.sees || restricted.Limit != test.limit {
			t.Errorf("%s: sees the project: %v, want %v; at most %d on a page", name, sees, test.sees, restricted.Limit)
		}
	}
	if _, err := rest.restrict(context.Background(), nil); err == nil {
		t.Error("a request of nobody is answered")
	}
}

// What the lists are narrowed by is nothing that a client may ask about.
func TestNobodySelectsByReaders(t *testing.T) {
	kind := projects().(*Kind[*gardencorev1beta1.Project])
	if _, found := kind.Fields[readersField]; found {
		t.Error("clients may select by readers")
	}
}
