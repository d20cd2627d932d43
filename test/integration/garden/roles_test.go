package garden

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// rolesPage holds the matrix that this test enforces.
const rolesPage = "../../../docs/authorization.md"

// Sections of the page with a table of resources.
const (
	sectionProject   = "A project itself"
	sectionNamespace = "In a project's namespace"
	sectionGarden    = "In the namespace garden"
	sectionCluster   = "In the whole garden"
)

var (
	reads       = []string{"get", "list", "watch"}
	all         = slices.Concat(reads, []string{"create", "update", "patch", "delete", "deletecollection"})
	customVerbs = map[string][]string{
		"projects": {"manage-members", "modify-spec-tolerations-whitelist"},
		"namespacedcloudprofiles": {
			"modify-spec-kubernetes", "modify-spec-machineimages", "modify-spec-providerconfig", "raise-spec-limits",
		},
		"shoots": {"mark-self-hosted"},
	}
)

// line is one row of a table: what each role may do with a resource.
type line struct {
	section, group, resource, subresource string
	allowed                               map[string][]string
}

// verbs are the verbs that make a difference for the resource.
func (l line) verbs() []string { return slices.Concat(all, customVerbs[l.resource]) }

// readMatrix reads the tables of the page.
func readMatrix(t *testing.T) []line {
	t.Helper()
	content, err := os.ReadFile(rolesPage)
	if err != nil {
		t.Fatal(err)
	}
	var lines []line
	var section string
	var roles []string
	for row := range strings.Lines(string(content)) {
		row = strings.TrimSpace(row)
		switch {
		case strings.HasPrefix(row, "## "):
			section = strings.TrimPrefix(row, "## ")
		case strings.HasPrefix(row, "| resource |"):
			roles = cells(row)[1:]
		case strings.HasPrefix(row, "| `"):
			lines = append(lines, parseLine(t, section, cells(row), roles))
		}
	}
	return lines
}

func cells(row string) []string {
	parts := strings.Split(strings.Trim(row, "|"), "|")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func parseLine(t *testing.T, section string, cells, roles []string) line {
	t.Helper()
	parts := strings.Split(strings.Trim(cells[0], "`"), "/")
	if len(parts) < 2 || len(cells) != len(roles)+1 {
		t.Fatalf("%s: malformed row %v", section, cells)
	}
	parsed := line{section: section, group: parts[0], resource: parts[1], allowed: map[string][]string{}}
	if len(parts) > 2 {
		parsed.subresource = parts[2]
	}
	for i, role := range roles {
		parsed.allowed[role] = parseVerbs(t, parsed, cells[i+1])
	}
	return parsed
}

func parseVerbs(t *testing.T, of line, cell string) []string {
	t.Helper()
	var verbs []string
	for _, word := range strings.Split(cell, ",") {
		switch word = strings.TrimSpace(word); word {
		case "–":
		case "read":
			verbs = append(verbs, reads...)
		case "all":
			verbs = append(verbs, all...)
		case "full":
			verbs = append(verbs, of.verbs()...)
		default:
			if !slices.Contains(of.verbs(), word) {
				t.Fatalf("%s: %s has no verb %q", of.section, of.resource, word)
			}
			verbs = append(verbs, word)
		}
	}
	return verbs
}

// memberRoles are the roles of members, by their column.
var memberRoles = map[string]string{
	"owner": gardencorev1beta1.ProjectMemberOwner, "admin": gardencorev1beta1.ProjectMemberAdmin,
	"viewer":   gardencorev1beta1.ProjectMemberViewer,
	"uam":      gardencorev1beta1.ProjectMemberUserAccessManager,
	"accounts": gardencorev1beta1.ProjectMemberServiceAccountManager, "extension": "extension:reader",
}

func person(role, project string) string { return role + "@" + project }

func userSubject(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// people returns one member per role.
func people(project string) []gardencorev1beta1.ProjectMember {
	var members []gardencorev1beta1.ProjectMember
	for column, role := range memberRoles {
		members = append(members, gardencorev1beta1.ProjectMember{
			Subject: userSubject(person(column, project)), Role: role,
		})
	}
	return members
}

// newPeople founds a project with one member per role and waits until they have their rights.
func newPeople(t *testing.T, name string) {
	t.Helper()
	project := &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if name != gardencorev1beta1.GardenNamespace {
		newProject(t, name)
	}
	eventually(t, func() error {
		if err := get(project); err != nil {
			return err
		}
		owner := userSubject(person("owner", name))
		project.Spec.Owner, project.Spec.Members = &owner, people(name)
		return env.Client.Update(context.Background(), project)
	})
	aggregate(t, "gardener.cloud:extension:project:"+name+":reader")
}

// aggregate does what kube-controller-manager does in a garden and nobody in this test: it fills a role with the rules
// of an extension's ClusterRole.
func aggregate(t *testing.T, name string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}}
	eventually(t, func() error {
		if err := get(role); err != nil {
			return err
		}
		role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: reads}}
		return env.Client.Update(context.Background(), role)
	})
}

// bindOperators gives one user each of the roles for operators.
func bindOperators(t *testing.T) {
	t.Helper()
	for column, role := range map[string]string{
		"operator": "gardener.cloud:system:administrators", "auditor": "gardener.cloud:system:viewers",
	} {
		binding := &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: column}, Subjects: []rbacv1.Subject{userSubject(column)},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
		if err := env.Client.Create(context.Background(), binding); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
	}
}

// question is one request of somebody, with the answer that the matrix gives.
type question struct {
	user       string
	attributes authorizationv1.ResourceAttributes
	want       bool
}

func (q question) String() string {
	a := q.attributes
	return fmt.Sprintf("%s: %s %s/%s/%s %s/%s", q.user, a.Verb, a.Group, a.Resource, a.Subresource, a.Namespace, a.Name)
}

func (q question) ask() error {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: q.user, Groups: []string{"system:authenticated"}, ResourceAttributes: &q.attributes,
	}}
	if err := env.Client.Create(context.Background(), review); err != nil {
		return fmt.Errorf("%s: %w", q, err)
	}
	if review.Status.Allowed != q.want {
		return fmt.Errorf("%s: allowed = %v, want %v (%s)", q, review.Status.Allowed, q.want, review.Status.Reason)
	}
	return nil
}

// askers returns who is asked about a line, each with the column that answers.
func (l line) askers(own, other string) map[string]string {
	askers := map[string]string{"operator": "operator", "auditor": "auditor", "stranger": "others"}
	for role := range memberRoles {
		askers[person(role, own)] = role
		askers[person(role, other)] = "others"
	}
	return askers
}

// questions returns what is asked about a line: by the members of a project, of another one, and by everybody else.
func (l line) questions(own, other string) []question {
	attributes := authorizationv1.ResourceAttributes{
		Group: l.group, Version: "*", Resource: l.resource, Subresource: l.subresource, Name: "any",
	}
	switch l.section {
	case sectionProject:
		attributes.Name = own
	case sectionNamespace:
		attributes.Namespace = gardencorev1beta1.ProjectNamePrefix + own
	case sectionGarden:
		attributes.Namespace, own = gardencorev1beta1.GardenNamespace, gardencorev1beta1.GardenNamespace
	}
	var questions []question
	for user, column := range l.askers(own, other) {
		for _, verb := range l.verbs() {
			attributes.Verb = verb
			questions = append(questions, question{user, attributes, slices.Contains(l.allowed[column], verb)})
		}
		if l.section == sectionNamespace {
			questions = append(questions, l.everywhere(user, column))
		}
	}
	return questions
}

// everywhere asks for the objects of all namespaces.
func (l line) everywhere(user, column string) question {
	isOperator := column == "operator" || column == "auditor"
	return question{user, authorizationv1.ResourceAttributes{
		Verb: "list", Group: l.group, Version: "*", Resource: l.resource, Subresource: l.subresource,
	},
		isOperator && slices.Contains(l.allowed[column], "list")}
}

// TestRolesMatrix tries every verb on every kind for every role, in a project of one's own, in another's, in the
// operators' and in the whole garden, and holds the answers of the garden against docs/authorization.md.
func TestRolesMatrix(t *testing.T) {
	startControllerManager(t)
	for _, project := range []string{"roles-a", "roles-b", gardencorev1beta1.GardenNamespace} {
		newPeople(t, project)
	}
	bindOperators(t)
	matrix := readMatrix(t)
	t.Run("complete", func(t *testing.T) { matrixIsComplete(t, matrix) })
	var questions []question
	for _, line := range matrix {
		questions = append(questions, line.questions("roles-a", "roles-b")...)
	}
	awaitAnswers(t, questions)
	failures := make([]error, len(questions))
	workqueue.ParallelizeUntil(context.Background(), 16, len(questions),
		func(i int) { failures[i] = questions[i].ask() })
	if err := errors.Join(failures...); err != nil {
		t.Error(err)
	}
	t.Logf("asked %d questions", len(questions))
	t.Run("admission", func(t *testing.T) { admissionOfRoles(t, "roles-a", "roles-b") })
}

// awaitAnswers waits until the members have their first rights.
func awaitAnswers(t *testing.T, questions []question) {
	t.Helper()
	allowed := map[string]question{}
	for _, question := range questions {
		if question.want {
			allowed[question.user] = question
		}
	}
	for _, question := range allowed {
		eventually(t, question.ask)
	}
}

// matrixIsComplete makes sure that each resource that garden-apiserver serves has a line.
func matrixIsComplete(t *testing.T, matrix []line) {
	discoverer, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := discoverer.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, line := range matrix {
		listed[strings.TrimSuffix(line.group+"/"+line.resource+"/"+line.subresource, "/")] = true
	}
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		for _, resource := range list.APIResources {
			if strings.HasSuffix(group, ".gardener.cloud") && !listed[group+"/"+resource.Name] {
				t.Errorf("%s: no table has %s/%s", rolesPage, group, resource.Name)
			}
		}
	}
}

// clientsOf returns clients of people by their names.
func clientsOf(t *testing.T, users ...string) map[string]client.Client {
	t.Helper()
	clients := map[string]client.Client{}
	for _, user := range users {
		made, err := env.ClientFor(user)
		if err != nil {
			t.Fatal(err)
		}
		clients[user] = made
	}
	return clients
}

func secretIn(namespace, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}
