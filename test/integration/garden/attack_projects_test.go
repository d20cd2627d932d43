package garden

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/test/integration/environment"
)

// hidden is the project whose name nobody but its members may learn. It lies between two of the attacker's own.
const hidden = "hide-truth"

// attacker asks an API server as somebody, in ways that clients do not offer.
type attacker struct {
	name, server string
	http         *http.Client
}

func newAttacker(t *testing.T, server, name string, groups ...string) attacker {
	t.Helper()
	config, err := env.ConfigFor(server, name, groups...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return attacker{name: name, server: server, http: made}
}

// get reads an answer to its end.
func (a attacker) get(t *testing.T, path, query, accept string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodGet,
		a.server+"/apis/core.gardener.cloud/v1beta1/"+path+"?"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := a.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(content)
}

// TestAttackHiddenProjects plays people who want to know of projects that they are no members of.
func TestAttackHiddenProjects(t *testing.T) {
	startControllerManager(t)
	const mallory, former = "hide-mallory", "hide-former"
	// One whose role is an extension's may not get the project, either.
	extension := gardencorev1beta1.ProjectMember{Subject: userSubject("hide-extension"), Role: "extension:reader"}
	first := foundProject(t, "hide-a", mallory)
	target := foundProject(t, hidden, "hide-owner", extension)
	foundProject(t, "hide-z", mallory)
	awaitProjects(t, watcherFor(t, env.Config.Host, mallory), "hide-a", "hide-z")
	changeMembers(t, hidden, func(spec *gardencorev1beta1.ProjectSpec) { spec.Description = new("plans of " + hidden) })
	changeMembers(t, hidden, addMember(former))
	awaitProjects(t, watcherFor(t, env.Config.Host, former), hidden)
	changeMembers(t, hidden, removeMember(former))
	awaitProjects(t, watcherFor(t, env.Config.Host, former))

	t.Run("by everybody", func(t *testing.T) {
		for _, a := range attackers(t, mallory, former) {
			t.Run(a.name+" at "+a.server, func(t *testing.T) {
				t.Parallel()
				attackLists(t, a, first, target)
				attackWatches(t, a, target)
			})
		}
	})
	attackPages(t, newAttacker(t, env.Config.Host, mallory))
	attackNames(t, watcherFor(t, env.Config.Host, mallory))
	attackWatchOfChanges(t, mallory)
}

// attackers are people, and a seed, at both API servers.
func attackers(t *testing.T, people ...string) []attacker {
	t.Helper()
	var all []attacker
	for _, server := range []string{env.Config.Host, env.GardenAPIServerURL} {
		for _, name := range append(people, "hide-stranger", "hide-extension") {
			all = append(all, newAttacker(t, server, name))
		}
		all = append(all, newAttacker(t, server, gardencorev1beta1.SeedUserNamePrefix+"hide", gardencorev1beta1.SeedsGroup))
	}
	return all
}

// attackLists reads lists in all forms, of all times, narrowed in all ways: nothing of the target is in any answer.
func attackLists(t *testing.T, a attacker, first, target *gardencorev1beta1.Project) {
	t.Helper()
	table := "application/json;as=Table;v=v1;g=meta.k8s.io"
	metadata := "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
	for _, accept := range []string{"application/json", "application/yaml", table, metadata} {
		for _, query := range []string{
			"", "limit=1", "limit=500", "resourceVersion=0", "resourceVersion=" + target.ResourceVersion,
			"resourceVersionMatch=Exact&resourceVersion=" + target.ResourceVersion,
			"resourceVersionMatch=NotOlderThan&resourceVersion=" + first.ResourceVersion,
			"fieldSelector=" + url.QueryEscape("metadata.name!=hide-a"), "fieldSelector=readers%3Da",
			"fieldSelector=readers!%3Da", "labelSelector=" + url.QueryEscape("!none"),
			"fieldSelector=" + url.QueryEscape("spec.namespace!=x"), "includeObject=Object",
		} {
			if status, body := a.get(t, "projects", query, accept); strings.Contains(body, "hide-owner") ||
				strings.Contains(body, hidden) {
				t.Errorf("%s at %s learns by %q as %s: %d %s", a.name, a.server, query, accept, status, body)
			}
		}
	}
	for _, selector := range []string{"metadata.name=" + hidden, "spec.namespace=garden-" + hidden} {
		_, there := a.get(t, "projects", "fieldSelector="+url.QueryEscape(selector), "application/json")
		_, none := a.get(t, "projects", "fieldSelector="+url.QueryEscape(strings.ReplaceAll(selector, hidden, "none")),
			"application/json")
		if strings.Contains(there, "hide-owner") || withoutVersion(there) != withoutVersion(none) {
			t.Errorf("%s at %s tells by %s what is there:\n%s\n%s", a.name, a.server, selector, there, none)
		}
	}
}

// withoutVersion leaves out what differs between any two lists: the revision, and the name that was asked for.
func withoutVersion(list string) string {
	if start := strings.Index(list, `"resourceVersion":"`); start >= 0 {
		end := start + len(`"resourceVersion":"`)
		list = list[:start] + list[end+strings.Index(list[end:], `"`):]
	}
	return strings.NewReplacer(hidden, "NAME", `\"none\"`, `\"NAME\"`, `"none"`, `"NAME"`).Replace(list)
}

// attackWatches watches from the beginning, from before the target was there, and under its name.
func attackWatches(t *testing.T, a attacker, target *gardencorev1beta1.Project) {
	t.Helper()
	const initial = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
	for _, query := range []string{
		"watch=1&resourceVersion=0", "watch=1", "watch=1&resourceVersion=" + target.ResourceVersion, "watch=1&" + initial,
		"watch=1&fieldSelector=" + url.QueryEscape("metadata.name="+hidden),
	} {
		if status, body := a.get(t, "projects", query+"&timeoutSeconds=1", "application/json"); a.name != "hide-former" &&
			strings.Contains(body, "hide-owner") {
			t.Errorf("%s at %s learns by %s: %d %s", a.name, a.server, query, status, body)
		}
	}
	for _, path := range []string{"watch/projects", "watch/projects/" + hidden} {
		if status, body := a.get(t, path, "timeoutSeconds=1", "application/json"); strings.Contains(body, "hide-owner") {
			t.Errorf("%s at %s learns by %s: %d %s", a.name, a.server, path, status, body)
		}
	}
}

// attackPages has a page end before the target, and forges where the next begins.
func attackPages(t *testing.T, a attacker) {
	t.Helper()
	if _, body := a.get(t, "projects", "limit=1", "application/json"); !strings.Contains(body, "hide-z") ||
		strings.Contains(body, `"continue"`) || strings.Contains(body, "remainingItemCount") {
		t.Errorf("a page tells that there is more: %s", body)
	}
	for _, revision := range []string{"-1", "1"} {
		for _, start := range []string{hidden, "hide-a\u0000", "\u0000"} {
			token := base64.RawURLEncoding.EncodeToString(
				[]byte(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%s,"start":%q}`, revision, start)))
			if status, body := a.get(t, "projects", "limit=1&continue="+token, "application/json"); status !=
				http.StatusGone {
				t.Errorf("a forged page from %q: %d %s", start, status, body)
			}
		}
	}
}

// attackNames asks for the target by its name: the answers are those about a name that nobody has.
func attackNames(t *testing.T, mallory client.Client) {
	t.Helper()
	ctx := context.Background()
	ask := map[string]func(name string) error{
		"get": func(name string) error {
			return mallory.Get(ctx, client.ObjectKey{Name: name}, &gardencorev1beta1.Project{})
		},
		"delete": func(name string) error {
			return mallory.Delete(ctx, &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}})
		},
		"patch": func(name string) error {
			return mallory.Patch(ctx, &gardencorev1beta1.Project{ObjectMeta: metav1.ObjectMeta{Name: name}}, merge(`{}`))
		},
		"deletecollection": func(string) error { return mallory.DeleteAllOf(ctx, &gardencorev1beta1.Project{}) },
	}
	for verb, request := range ask {
		there, none := request(hidden), request("hide-none")
		if !apierrors.IsForbidden(there) || strings.ReplaceAll(there.Error(), hidden, "hide-none") != none.Error() {
			t.Errorf("%s: %v, and of none: %v", verb, there, none)
		}
	}
}

// attackWatchOfChanges watches while the target changes: the next event is about the attacker's own project.
func attackWatchOfChanges(t *testing.T, mallory string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), environment.Patience)
	defer cancel()
	watcher, err := watcherFor(t, env.Config.Host, mallory).Watch(ctx, &gardencorev1beta1.ProjectList{})
	if err != nil {
		t.Fatal(err)
	}
	defer watcher.Stop()
	changeMembers(t, hidden, func(spec *gardencorev1beta1.ProjectSpec) { spec.Purpose = new("secret") })
	changeMembers(t, hidden, addMember("hide-other"))
	changeMembers(t, "hide-z", func(spec *gardencorev1beta1.ProjectSpec) { spec.Purpose = new("mine") })
	for event := range watcher.ResultChan() {
		project, ok := event.Object.(*gardencorev1beta1.Project)
		if !ok || !slices.Contains([]string{"hide-a", "hide-z"}, project.Name) {
			t.Fatalf("event %+v", event)
		}
		if event.Type == watch.Modified && project.Spec.Purpose != nil && *project.Spec.Purpose == "mine" {
			return
		}
	}
	t.Fatal("the watch ended before the own project changed")
}
