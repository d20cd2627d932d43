package garden

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// servedResources returns every resource and subresource that the garden serves, as <group>/<resource>[/<subresource>],
// with whether its objects have a namespace.
func servedResources(t *testing.T) map[string]bool {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(env.Config)
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := discoverer.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	served := map[string]bool{}
	for _, list := range lists {
		group, _, isNamed := strings.Cut(list.GroupVersion, "/")
		if !isNamed {
			group = ""
		}
		for _, resource := range list.APIResources {
			served[group+"/"+resource.Name] = resource.Namespaced
		}
	}
	return served
}

// unnamed is what the seed authorizer allows without knowing an object: the lines of the matrix of seeds for objects
// that nobody knows. Creations name their object later, when the policy of kube-apiserver or the admission plugin
// SeedRestriction asks again. The seed has shoots in the namespaces P and garden.
var unnamed = []request{
	{"core.gardener.cloud", "seeds", "", "", "", "create", "", ""},
	{"core.gardener.cloud", "controllerregistrations", "", "", "", "get list watch", "get list watch", ""},
	{"core.gardener.cloud", "shootstates", "", "P", "", "create", "", ""},
	{"core.gardener.cloud", "shootstates", "", "garden", "", "create", "", ""},
	{"core.gardener.cloud", "backupentries", "", "P", "", "create", "", ""},
	{"core.gardener.cloud", "backupentries", "", "garden", "", "create", "", ""},
	{"core.gardener.cloud", "internalsecrets", "", "P", "", "create", "", ""},
	{"core.gardener.cloud", "internalsecrets", "", "garden", "", "create", "", ""},
	{"", "namespaces", "", "", "", "create", "", ""},
	{"", "secrets", "", "P", "", "create", "", ""},
	{"", "secrets", "", "kube-system", "", "create", "", ""},
	{"", "secrets", "", "garden", "", "create", "", ""},
	{"", "secrets", "", "seed-S", "", "get list watch create update patch delete", "get list watch", ""},
	{"", "configmaps", "", "P", "", "create", "", ""},
	{"", "configmaps", "", "garden", "", "create", "", ""},
	{"", "configmaps", "", "seed-S", "", "get list watch create update patch delete", "get list watch", ""},
	{"", "serviceaccounts", "", "garden", "", "create", "", ""},
	{"", "serviceaccounts", "", "seed-S", "", "get list watch create update patch delete", "get", ""},
	{"", "serviceaccounts", "token", "seed-S", "", "create", "", ""},
	{"", "events", "", "P", "", "create update patch", "create update patch", ""},
	{"", "events", "", "garden", "", "create update patch", "create update patch", ""},
	{"", "events", "", "seed-S", "", "create update patch", "create update patch", ""},
	{"events.k8s.io", "events", "", "P", "", "create update patch", "create update patch", ""},
	{"events.k8s.io", "events", "", "garden", "", "create update patch", "create update patch", ""},
	{"events.k8s.io", "events", "", "seed-S", "", "create update patch", "create update patch", ""},
	{
		"coordination.k8s.io", "leases", "", "seed-S", "", "get list watch create update patch delete",
		"get list watch create update patch delete", "",
	},
	{"certificates.k8s.io", "certificatesigningrequests", "", "", "", "create", "", ""},
}

// attackBeyondMatrix tries every verb on every resource and subresource that the garden serves, with the identities of
// a gardenlet and of an extension, in namespaces of all sorts: nothing is allowed but the lines of unnamed. The seed
// authorizer is asked itself, what RBAC adds is in TestAttackBeyondRoles.
func attackBeyondMatrix(t *testing.T, who tenant) {
	config, err := env.ConfigFor(env.GardenAPIServerURL, gardencorev1beta1.GardenKubeAPIServerUser)
	if err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	asker, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	gardenlet, extension := seedUsers(who)
	questions := questionsToSeedAuthorizer(t, who)
	workqueue.ParallelizeUntil(context.Background(), 8, len(questions), func(i int) {
		q := questions[i]
		for user, want := range map[string]string{gardenlet: q.line.gardenlet, extension: q.line.extension} {
			allowed, err := askSeedAuthorizer(asker.RESTClient(), user, &q.attributes)
			if err != nil || allowed != slices.Contains(strings.Fields(want), q.attributes.Verb) {
				t.Errorf("%s: allowed = %v, want %q only (%v)", question{user: user, attributes: q.attributes}, allowed,
					want, err)
			}
		}
	})
	t.Logf("asked %d questions", 2*len(questions))
}

// seedUsers returns the names of a seed's gardenlet and of one of its extensions.
func seedUsers(who tenant) (gardenlet, extension string) {
	return gardencorev1beta1.SeedUserNamePrefix + who.seed, "system:serviceaccount:seed-" + who.seed + ":extension"
}

// unnamedQuestion is a question with the line that answers it.
type unnamedQuestion struct {
	attributes authorizationv1.ResourceAttributes
	line       request
}

// questionsToSeedAuthorizer combines resources, namespaces and verbs. As in a request, a name is told where the verb is
// about one object.
func questionsToSeedAuthorizer(t *testing.T, who tenant) []unnamedQuestion {
	answers := map[authorizationv1.ResourceAttributes]request{}
	for _, line := range unnamed {
		answers[line.of(who)] = line
	}
	var questions []unnamedQuestion
	for key, namespaced := range servedResources(t) {
		namespaces := []string{""}
		if namespaced {
			namespaces = []string{who.namespace, "seed-" + who.seed, gardencorev1beta1.GardenNamespace, "kube-system"}
		}
		parts := append(strings.Split(key, "/"), "")
		for _, namespace := range namespaces {
			attributes := authorizationv1.ResourceAttributes{
				Group: parts[0], Version: "*", Resource: parts[1], Subresource: parts[2], Namespace: namespace,
			}
			line := answers[attributes]
			delete(answers, attributes)
			for _, verb := range all {
				attributes.Verb, attributes.Name = verb, ""
				if slices.Contains([]string{"get", "update", "patch", "delete"}, verb) {
					attributes.Name = "unknown"
				}
				questions = append(questions, unnamedQuestion{attributes, line})
			}
		}
	}
	for _, line := range answers {
		t.Errorf("nothing served is like %+v", line)
	}
	return questions
}

// right is what RBAC gives in a namespace. Name is empty where it is about all objects.
type right struct{ verb, resource, name string }

// identity is somebody whose rights are held against a column of the tables, with what he may do besides.
type identity struct {
	user, column string
	groups       []string
	besides      []right
}

// everybodys are the rights of everybody who is authenticated that the tables have no line for: to ask what one may do,
// and to read by what clients know the garden.
var everybodys = []right{
	{"create", "authorization.k8s.io/selfsubjectaccessreviews", ""},
	{"create", "authorization.k8s.io/selfsubjectrulesreviews", ""},
	{"create", "authentication.k8s.io/selfsubjectreviews", ""},
	{"get", "/configmaps", gardencorev1beta1.ClusterIdentity},
}

// everybodysPaths are the paths without objects that everybody may get; a star ends a prefix.
var everybodysPaths = sets.New("/api", "/api/*", "/apis", "/apis/*", "/openapi", "/openapi/*", "/healthz", "/livez",
	"/readyz", "/version", "/version/",
	"/.well-known/openid-configuration", "/.well-known/openid-configuration/", "/openid/v1/jwks", "/openid/v1/jwks/")

// identities are all sorts of users of a garden.
func identities(project string) []identity {
	const requests = "certificates.k8s.io/certificatesigningrequests"
	seed := tenant{seed: "any"}
	gardenlet, extension := seedUsers(seed)
	accounts := func(namespace string) []string {
		return []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace}
	}
	waits := []right{{"create", requests, ""}, {"get", requests, ""}}
	found := []identity{
		{user: "operator", column: "operator"}, {user: "auditor", column: "auditor"},
		{user: "stranger", column: "others"},
		{
			user: "system:serviceaccount:garden-" + project + ":robot", column: "others",
			groups: accounts("garden-" + project),
		},
		{user: gardenlet, column: "others", groups: []string{gardencorev1beta1.SeedsGroup}, besides: waits[:1]},
		{user: extension, column: "others", groups: accounts("seed-any")},
		{user: "system:bootstrap:abcdef", column: "others", groups: []string{"system:bootstrappers"}, besides: waits},
		{
			user: "system:serviceaccount:garden:gardenlet-bootstrap-any", column: "others", groups: accounts("garden"),
			besides: waits,
		},
	}
	for role := range memberRoles {
		member := identity{user: person(role, project), column: role}
		if !slices.Contains([]string{"uam", "accounts"}, role) {
			member.besides = []right{{"get", "/namespaces", ""}}
		}
		found = append(found, member)
	}
	return found
}

// TestAttackBeyondRoles lists what RBAC gives each sort of user in a project, in another, in those of the operators and
// of Kubernetes: no right on any resource or subresource, served or not, that docs/authorization.md does not tell.
func TestAttackBeyondRoles(t *testing.T) {
	const project = "beyond"
	startControllerManager(t)
	newPeople(t, project)
	bindOperators(t)
	tables, served := readMatrix(t), servedResources(t)
	seen := 0
	for _, who := range identities(project) {
		asks, err := env.ClientFor(who.user, who.groups...)
		if err != nil {
			t.Fatal(err)
		}
		own := gardencorev1beta1.ProjectNamePrefix + project
		eventually(t, func() error { return hasRole(tables, rightsIn(t, asks, own, served), who.column) })
		for _, namespace := range []string{own, "garden-other", gardencorev1beta1.GardenNamespace, "kube-system"} {
			for _, r := range rightsIn(t, asks, namespace, served) {
				seen++
				if !slices.Contains(everybodys, r) && !slices.Contains(who.besides, r) &&
					!isTold(tables, r, who.column, project, namespace) {
					t.Errorf("%s may %s %s %q in namespace %s: no table says so", who.user, r.verb, r.resource, r.name,
						namespace)
				}
			}
		}
	}
	t.Logf("held %d rights against the tables", seen)
}

// hasRole tells whether all rights that the tables give a role in a project are there: controllers write them one by
// one.
func hasRole(tables []line, rights []right, role string) error {
	for _, l := range tables {
		for _, verb := range l.allowed[role] {
			given := func(r right) bool { return r.resource == l.key() && (r.verb == verb || r.verb == rbacv1.VerbAll) }
			if l.section != sectionGarden && !slices.ContainsFunc(rights, given) {
				return fmt.Errorf("%s may not yet %s %s", role, verb, l.key())
			}
		}
	}
	return nil
}

// key is the resource of a line, as <group>/<resource>[/<subresource>].
func (l line) key() string { return strings.TrimSuffix(l.group+"/"+l.resource+"/"+l.subresource, "/") }

// rightsIn returns what RBAC gives somebody in a namespace, without wildcards.
func rightsIn(t *testing.T, asks client.Client, namespace string, served map[string]bool) []right {
	t.Helper()
	review := &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
	}
	if err := asks.Create(context.Background(), review); err != nil {
		t.Fatal(err)
	}
	if len(review.Status.ResourceRules) == 0 {
		t.Fatal("everybody has some rights: are the rules listed?")
	}
	for _, rule := range review.Status.NonResourceRules {
		if !everybodysPaths.HasAll(rule.NonResourceURLs...) || !slices.Equal(rule.Verbs, []string{"get"}) {
			t.Errorf("somebody may %v %v", rule.Verbs, rule.NonResourceURLs)
		}
	}
	var rights []right
	for _, rule := range review.Status.ResourceRules {
		for _, key := range keysOf(rule, served) {
			for _, verb := range rule.Verbs {
				for _, name := range append(rule.ResourceNames, "")[:max(1, len(rule.ResourceNames))] {
					rights = append(rights, right{verb, key, name})
				}
			}
		}
	}
	return rights
}

// keysOf returns the resources of a rule: those that it names, and of those that are served what its wildcards mean.
func keysOf(rule authorizationv1.ResourceRule, served map[string]bool) []string {
	keys := sets.New[string]()
	for _, group := range rule.APIGroups {
		for _, resource := range rule.Resources {
			if group != "*" && !strings.Contains(resource, "*") {
				keys.Insert(group + "/" + resource)
				continue
			}
			for key := range served {
				in, of, _ := strings.Cut(key, "/")
				if (group == "*" || group == in) && (resource == "*" || resource == of) {
					keys.Insert(key)
				}
			}
		}
	}
	return sets.List(keys)
}

// isTold looks a right up in the tables. A role in a project counts in its namespace and for its Project; elsewhere its
// member is one of the others.
func isTold(tables []line, r right, role, project, namespace string) bool {
	isOperator := role == "operator" || role == "auditor"
	return slices.ContainsFunc(tables, func(l line) bool {
		if l.key() != r.resource {
			return false
		}
		column := "others"
		switch {
		case isOperator, l.section == sectionCluster, l.section == sectionProject && r.name == project,
			l.section == sectionNamespace && namespace == gardencorev1beta1.ProjectNamePrefix+project:
			column = role
		}
		if r.verb == rbacv1.VerbAll {
			return len(l.verbs()) == len(l.allowed[column])
		}
		return slices.Contains(l.allowed[column], r.verb)
	})
}
