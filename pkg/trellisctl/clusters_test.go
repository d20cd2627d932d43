package trellisctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/cluster/v1alpha1"
)

func memberOf(name string, mode clusterv1alpha1.SyncMode, labels map[string]string) client.Object {
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: clusterv1alpha1.ClusterSpec{SyncMode: mode},
	}
}

// fleetWith is one whose members answer by their paths.
func fleetWith(t *testing.T, answers map[string]string, members ...client.Object) *Fleet {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path, below := strings.CutPrefix(r.URL.Path, "/apis/cluster.karmada.io/v1alpha1/clusters/")
		answer, found := answers[path]
		w.Header().Set("Content-Type", "application/json")
		switch {
		case !below:
			t.Errorf("%s is asked, which is of no member", r.URL.Path)
		case answer == "forbidden":
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,`+
				`"message":"no rights"}`)
		case found:
			fmt.Fprint(w, answer)
		default:
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404,`+
				`"message":"not there"}`)
		}
	}))
	t.Cleanup(server.Close)
	fleet := fleetOf(t, members...)
	fleet.Config = &rest.Config{Host: server.URL}
	return fleet
}

func TestChosenMembers(t *testing.T) {
	fleet := fleetOf(t, memberOf("b", "Push", nil), memberOf("a", "Push", map[string]string{"zone": "x"}),
		memberOf("c", "Push", map[string]string{"zone": "x"}))
	for _, test := range []struct {
		names          []string
		selector, want string
	}{
		{nil, "", "a b c"}, {[]string{"c", "a"}, "", "a c"}, {nil, "zone=x", "a c"}, {[]string{"a"}, "zone=x", "a"},
		{[]string{"b"}, "zone=x", `no member "b" with labels zone=x;`}, {[]string{"d"}, "", `no member "d"`},
		{nil, "zone=y", "no such members"}, {nil, "=", "--member-selector"},
	} {
		members, err := fleet.choose(t.Context(), test.names, test.selector)
		var names []string
		for _, member := range members {
			names = append(names, member.Name)
		}
		got := strings.Join(names, " ")
		if err != nil && !strings.Contains(err.Error(), test.want) || err == nil && got != test.want {
			t.Errorf("%v, %s: got %s, %v", test.names, test.selector, got, err)
		}
	}
}

// What one member answers wrong is told with the member, hides nothing, and is the command's status.
func TestErrorsOfMembers(t *testing.T) {
	missing := &metav1.Status{Reason: metav1.StatusReasonNotFound}
	for name, test := range map[string]struct {
		answers map[string]error
		want    []string
		failed  bool
	}{
		"all well": {map[string]error{"a": nil, "b": nil}, nil, false},
		"one fails": {
			map[string]error{"a": errors.New("broken"), "b": nil}, []string{"member a: broken"}, true,
		},
		"one has it, the other has not": {map[string]error{"a": statusError{missing}, "b": nil}, nil, false},
		"none has it": {
			map[string]error{"a": statusError{missing}, "b": statusError{missing}},
			[]string{"member a: gone", "member b: gone"}, true,
		},
	} {
		fleet := fleetOf(t, memberOf("a", "Push", nil), memberOf("b", "Push", nil))
		fleet.Config = &rest.Config{Host: "https://fleet.example"}
		members, err := fleet.choose(t.Context(), nil, "")
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		err = fleet.ask(t.Context(), members, 2, func(format string, values ...any) {
			said = append(said, fmt.Sprintf(format, values...))
		}, func(_ context.Context, member string, config *rest.Config) error {
			want := "https://fleet.example/apis/cluster.karmada.io/v1alpha1/clusters/" + member + "/proxy"
			if config.Host != want {
				t.Errorf("%s is asked at %s", member, config.Host)
			}
			return test.answers[member]
		})
		if (err != nil) != test.failed || err != nil && !errors.Is(err, ExitError{1}) {
			t.Errorf("%s: got %v", name, err)
		}
		slices.Sort(said)
		check(t, name, said, test.want)
	}
}

type statusError struct{ status *metav1.Status }

func (e statusError) Error() string         { return "gone" }
func (e statusError) Status() metav1.Status { return *e.status }

// A member with an agent is asked as any other: the fleet knows the way. What it says when the agent has no tunnel is
// told.
func TestMembersWithAnAgentAreAsked(t *testing.T) {
	fleet := fleetOf(t, memberOf("a", "Pull", nil), memberOf("b", "Push", nil))
	fleet.Config = &rest.Config{Host: "https://fleet.example"}
	members, err := fleet.choose(t.Context(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	say := func(format string, values ...any) { said = append(said, fmt.Sprintf(format, values...)) }
	err = fleet.ask(t.Context(), members, 1, say, func(_ context.Context, member string, config *rest.Config) error {
		if want := "/clusters/" + member + "/proxy"; !strings.HasSuffix(config.Host, want) {
			t.Errorf("%s is asked at %s", member, config.Host)
		}
		if member == "a" {
			return apierrors.NewServiceUnavailable("member a has an agent, which has had no tunnel")
		}
		return nil
	})
	if !errors.Is(err, ExitError{1}) {
		t.Errorf("got %v", err)
	}
	check(t, "what is told", said, []string{"member a: member a has an agent, which has had no tunnel"})
}

// A hostile member shows rows of nobody: of all namespaces that is an error, and no row of an empty namespace.
func TestAttackRowsWithoutAnObject(t *testing.T) {
	for name, object := range map[string]string{"none": "", "half": `{"metadata":`, "a list": "[]"} {
		table := &metav1.Table{
			ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}},
			Rows: []metav1.TableRow{
				{Cells: []any{"web-0"}, Object: runtime.RawExtension{Raw: []byte(object)}},
			},
		}
		if _, rows, err := rowsOf(table, true, false); err == nil || !strings.Contains(err.Error(), "row 1") {
			t.Errorf("%s: got %v, %v", name, rows, err)
		}
		if _, rows, err := rowsOf(table, false, false); err != nil || len(rows) != 1 {
			t.Errorf("%s, of one namespace: got %v, %v", name, rows, err)
		}
	}
}

// No more members are asked at a time than was said.
func TestMembersAreAskedAFewAtATime(t *testing.T) {
	var members []client.Object
	for i := range 6 {
		members = append(members, memberOf(fmt.Sprintf("m%d", i), "Push", nil))
	}
	fleet := fleetOf(t, members...)
	fleet.Config = &rest.Config{}
	chosen, err := fleet.choose(t.Context(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	running, both := make(chan struct{}, 2), make(chan struct{}, 6)
	err = fleet.ask(t.Context(), chosen, 2, t.Logf, func(ctx context.Context, _ string, _ *rest.Config) error {
		select {
		case running <- struct{}{}:
		default:
			t.Error("three at a time")
			return nil
		}
		both <- struct{}{}
		<-running
		return ctx.Err()
	})
	if err != nil || len(both) != 6 {
		t.Errorf("got %v, %d asked", err, len(both))
	}
	if err := fleet.ask(t.Context(), chosen, 0, t.Logf, nil); err == nil {
		t.Error("nobody is asked at a time")
	}
}

const (
	versions  = `{"kind":"APIVersions","versions":["v1"]}`
	groups    = `{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`
	resources = `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod",` +
		`"namespaced":true,"kind":"Pod","verbs":["get","list"],"shortNames":["po"]}]}`
	podTable = `{"kind":"Table","apiVersion":"meta.k8s.io/v1","columnDefinitions":[{"name":"Name"},{"name":"Node",` +
		`"priority":1}],"rows":[{"cells":["web-0","n1"],"object":{"metadata":{"namespace":"shop"}}}]}`
)

func TestGetFromMembers(t *testing.T) {
	fleet := fleetWith(t, map[string]string{
		"a/proxy/api": versions, "a/proxy/apis": groups, "a/proxy/api/v1": resources,
		"a/proxy/api/v1/namespaces/shop/pods": podTable, "a/proxy/api/v1/pods": podTable,
		"a/proxy/api/v1/namespaces/shop/pods/web-0": podTable, "a/proxy/api/v1/namespaces/no/pods": "forbidden",
	})
	for name, test := range map[string]struct {
		want  wanted
		table string
	}{
		"by a short name":   {wanted{resource: "po", namespace: "shop"}, "CLUSTER NAME\na web-0\n"},
		"one":               {wanted{resource: "pod", namespace: "shop", name: "web-0"}, "CLUSTER NAME\na web-0\n"},
		"wide":              {wanted{resource: "pods", namespace: "shop", wide: true}, "CLUSTER NAME NODE\na web-0 n1\n"},
		"of all namespaces": {wanted{resource: "pods", allNamespaces: true}, "CLUSTER NAMESPACE NAME\na shop web-0\n"},
		"forbidden":         {wanted{resource: "pods", namespace: "no"}, "no rights"},
		"an unknown type":   {wanted{resource: "boats", namespace: "shop"}, `serves no type "boats"`},
	} {
		var out bytes.Buffer
		err := getInto(t.Context(), newMemberTable(&out), "a", fleet.memberConfig("a"), test.want)
		got := squeezed(out.String())
		if err != nil && !strings.Contains(err.Error(), test.table) || err == nil && got != test.table {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestTopAndEventsOfMembers(t *testing.T) {
	fleet := fleetWith(t, map[string]string{
		"a/proxy/apis/metrics.k8s.io/v1beta1/nodes": `{"items":[{"metadata":{"name":"n1"},"usage":{"cpu":"1500m",` +
			`"memory":"2Gi"}}]}`,
		"a/proxy/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods": `{"items":[{"metadata":{"name":"web-0",` +
			`"namespace":"shop"},"containers":[{"usage":{"cpu":"1","memory":"1Mi"}},{"usage":{"cpu":"5m"}}]}]}`,
		"a/proxy/api/v1/namespaces/shop/events": `{"items":[` +
			`{"metadata":{"namespace":"shop"},"lastTimestamp":"2026-01-01T23:59:00Z","type":"Normal","reason":"Late",` +
			`"involvedObject":{"kind":"Pod","name":"web-0"},"source":{"component":"kubelet"},"message":"two\nlines"},` +
			`{"metadata":{"namespace":"shop"},"eventTime":"2026-01-01T23:00:00.000000Z","type":"Warning",` +
			`"reason":"Early","involvedObject":{"kind":"Pod","name":"web-0"},"message":"m"}]}`,
	})
	config := fleet.memberConfig("a")
	var nodes, pods, events bytes.Buffer
	err := errors.Join(
		topInto(t.Context(), newMemberTable(&nodes), "a", config, wanted{resource: "nodes"}),
		topInto(t.Context(), newMemberTable(&pods), "a", config, wanted{resource: "pods", namespace: "shop"}),
		eventsInto(t.Context(), newMemberTable(&events), "a", config, wanted{namespace: "shop"}, today))
	if err != nil {
		t.Fatal(err)
	}
	for got, want := range map[string]string{
		squeezed(nodes.String()): "CLUSTER NAME CPU MEMORY\na n1 1500m 2048Mi\n",
		squeezed(pods.String()):  "CLUSTER NAMESPACE NAME CPU MEMORY\na shop web-0 1005m 1Mi\n",
		squeezed(events.String()): "CLUSTER NAMESPACE OBJECT EVENT SEEN FROM MESSAGE\n" +
			"a shop Pod/web-0 Early 60m - Warning: m\na shop Pod/web-0 Late 60s kubelet two lines\n",
	} {
		if got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
	err = topInto(t.Context(), newMemberTable(&nodes), "b", fleet.memberConfig("b"), wanted{resource: "nodes"})
	if err == nil || !strings.Contains(err.Error(), "metrics-server") {
		t.Errorf("got %v", err)
	}
}

func TestLogsOfMembers(t *testing.T) {
	pod := `{"metadata":{"name":"web-0","namespace":"shop"},"spec":{"containers":[{"name":"c"}]}}`
	fleet := fleetWith(t, map[string]string{
		"a/proxy/api/v1/namespaces/shop/pods":           `{"kind":"PodList","apiVersion":"v1","items":[` + pod + `]}`,
		"a/proxy/api/v1/namespaces/shop/pods/web-0/log": "one\ntwo",
	})
	clients, err := kubernetes.NewForConfig(fleet.memberConfig("a"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = logsInto(t.Context(), &memberLines{out: &out}, "a", clients, podChoice{namespace: "shop", selector: "app=web"},
		&corev1.PodLogOptions{})
	if err != nil || out.String() != "a web-0  one\na web-0  two\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

// Lines of several sources come whole, and neither long ones nor half ones are kept for ever.
func TestLinesOfSeveralSources(t *testing.T) {
	var out bytes.Buffer
	lines := &memberLines{out: &out}
	a, b := lines.of("a"), lines.of("b")
	for _, step := range []struct {
		to   interface{ Write([]byte) (int, error) }
		text string
	}{{a, "on"}, {b, "two\r\nth"}, {a, "e\n\n"}, {b, "ree"}} {
		if n, err := step.to.Write([]byte(step.text)); err != nil || n != len(step.text) {
			t.Fatal(n, err)
		}
	}
	if err := errors.Join(a.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if want := "b  two\na  one\na  \nb  three\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
	out.Reset()
	if _, err := a.Write(bytes.Repeat([]byte("x"), 3*maxLine)); err != nil || out.Len() < 2*maxLine {
		t.Errorf("%d bytes of a line without end are printed, %v", out.Len(), err)
	}
}

// Columns line up with what was printed before, and the header comes again for others.
func TestRowsOfSeveralMembers(t *testing.T) {
	var out bytes.Buffer
	table := newMemberTable(&out)
	err := errors.Join(
		table.add("a", []string{"NAME", "AGE"}, [][]string{{"web", "1m"}}), table.add("b", []string{"NAME", "AGE"}, nil),
		table.add("longer", []string{"NAME", "AGE"}, [][]string{{"x\ny", ""}}),
		table.add("c", []string{"NAME"}, [][]string{{"z"}}))
	want := "CLUSTER   NAME   AGE\na         web    1m\nlonger    x y    -\nCLUSTER   NAME\nc         z\n"
	if err != nil || out.String() != want {
		t.Errorf("got\n%s%v, want\n%s", out.String(), err, want)
	}
}

// A file or a pipe gets no colors.
func TestColorsAreForTerminals(t *testing.T) {
	var out bytes.Buffer
	if colored(Visible(&out)) != nil || colored(&out) != nil {
		t.Error("a pipe is taken for a terminal")
	}
	for range 3 {
		if color := colorOf("a"); color < 31 || color > 36 || color != colorOf("a") {
			t.Errorf("got %d", color)
		}
	}
}
