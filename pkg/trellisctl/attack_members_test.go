package trellisctl

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/trellis-garden/trellis/pkg/answers"
	policyv1alpha1 "github.com/trellis-garden/trellis/pkg/apis/policy/v1alpha1"
	workv1alpha2 "github.com/trellis-garden/trellis/pkg/apis/work/v1alpha2"
	"github.com/trellis-garden/trellis/pkg/federation/plan"
)

// asJSON is what a hostile member sends.
func asJSON(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A member that somebody has in their hands names its pods as they like, and logs and answers what they like.
func TestAttackTextsOfMembers(t *testing.T) {
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: hostile}}
	pod.Spec.Containers = []corev1.Container{{Name: "c"}}
	list := corev1.PodList{Items: []corev1.Pod{pod}}
	list.Kind, list.APIVersion = "PodList", "v1"
	hostileTable := metav1.Table{
		ColumnDefinitions: []metav1.TableColumnDefinition{{Name: hostile}, {Name: "Name"}},
		Rows:              []metav1.TableRow{{Cells: []any{hostile, hostile}}},
	}
	hostileTable.Kind, hostileTable.APIVersion = "Table", "meta.k8s.io/v1"
	hostileTable.Rows[0].Object.Raw = []byte(asJSON(t, pod))
	fleet := fleetWith(t, map[string]string{
		"a/proxy/api": versions, "a/proxy/apis": groups, "a/proxy/api/v1": resources,
		"a/proxy/api/v1/pods":                                     asJSON(t, hostileTable),
		"a/proxy/api/v1/namespaces/shop/pods":                     asJSON(t, list),
		"a/proxy/api/v1/namespaces/shop/pods/" + hostile + "/log": hostile + "\x9b2J\n",
	})
	config := fleet.memberConfig("a")
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	logs := func(out io.Writer) error {
		return logsInto(t.Context(), &memberLines{out: out}, "a", clients, podChoice{namespace: "shop", selector: "x=y"},
			&corev1.PodLogOptions{})
	}
	for what, show := range map[string]func(io.Writer) error{
		"logs": logs,
		"get": func(out io.Writer) error {
			return getInto(t.Context(), newMemberTable(out), "a", config, wanted{resource: "pods", allNamespaces: true})
		},
		"errors": func(out io.Writer) error {
			tellAll(func(format string, values ...any) { fmt.Fprintf(out, format+"\n", values...) }, "a",
				errors.Join(errors.New(hostile), errors.New(hostile)))
			return nil
		},
	} {
		var out bytes.Buffer
		if err := show(Visible(&out)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		// Tabs have no place in columns, and a place in logs.
		expectHarmless(t, what, strings.ReplaceAll(out.String(), "FORGED\t", "FORGED "))
		if what != "logs" && strings.Contains(out.String(), "\t") {
			t.Errorf("%s: a tab is left in %q", what, out.String())
		}
	}
	// A file or a pipe gets the bytes of the log, behind a name that is harmless all the same.
	var file bytes.Buffer
	if err := logs(dataTo(Visible(&file))); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(file.String()) {
		if !strings.HasPrefix(line, "a x^[[2J") {
			t.Errorf("a line is not told to be of the pod: %q", line)
		}
	}
	if !strings.Contains(file.String(), "  x\x1b[2J\x1b]0;title\x07") || !strings.HasSuffix(file.String(), "\x9b2J\n") {
		t.Errorf("got %q", file.String())
	}
}

// What a fleet says of objects and plans has texts of members and of whoever writes policies.
func TestAttackTextsOfAFleet(t *testing.T) {
	binding := &workv1alpha2.ResourceBinding{}
	binding.Spec.Rollout = &policyv1alpha1.RolloutStrategy{}
	binding.Spec.RequiredBy = []workv1alpha2.BindingSnapshot{{}}
	binding.Status.Conditions = []metav1.Condition{{}}
	binding.Status.Rollout = &workv1alpha2.RolloutStatus{}
	poison(reflect.ValueOf(&binding.Spec).Elem())
	poison(reflect.ValueOf(&binding.Status).Elem())
	binding.Status.Conditions[0].Type = workv1alpha2.ConditionScheduled
	planned := &plan.Plan{
		Documents: []plan.Document{{}},
		Objects: []plan.ObjectChange{
			{Notes: []string{""}, Clusters: []plan.ClusterChange{{}}, Fields: []plan.FieldChange{{}}},
		},
		Warnings:   []plan.Warning{{}},
		PassedOver: []plan.PassedOver{{Objects: []plan.KeptObject{{}}}}, Held: []plan.Held{{}},
	}
	poison(reflect.ValueOf(planned).Elem())
	for what, show := range map[string]func(io.Writer) error{
		"explain": func(out io.Writer) error {
			explainSummary(out, binding)
			return nil
		},
		"rollout status": func(out io.Writer) error { return printRollout(out, binding, hostile, today) },
		"plan":           func(out io.Writer) error { return printPlan(out, planned, true) },
	} {
		var out bytes.Buffer
		if err := show(Visible(&out)); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		expectHarmless(t, what, out.String())
	}
}

// endless answers what never ends, and for one path that it is to be asked elsewhere.
func endless(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/nodes") {
			http.Redirect(w, r, "http://elsewhere.example/", http.StatusFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		piece := bytes.Repeat([]byte("a"), 1<<10)
		if !strings.HasSuffix(r.URL.Path, "/log") {
			fmt.Fprint(w, `{"items":["`)
		} else {
			piece[len(piece)-1] = '\n'
		}
		for range 4 << 10 {
			if _, err := w.Write(piece); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server
}

// Nobody fills the memory of who asks, or has them ask somebody else. Logs, which are not kept, go on.
func TestAttackAnswersWithoutAnEnd(t *testing.T) {
	config := boundedBy(&rest.Config{Host: endless(t).URL}, answers.Limits{Answer: 1 << 20, Event: 1 << 20})
	for resource, want := range map[string]string{
		"pods": "was cut off: it is larger than 1 MiB", "nodes": `elsewhere, to host "elsewhere.example"`,
	} {
		err := topInto(t.Context(), newMemberTable(io.Discard), "a", config, wanted{resource: resource, namespace: ""})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", resource, err, want)
		}
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-0"}}
	if err := logInto(t.Context(), &memberLines{out: &out}, "a", clients, pod, &corev1.PodLogOptions{}); err != nil ||
		out.Len() < 4<<20 {
		t.Errorf("got %d bytes, %v", out.Len(), err)
	}
}

// All that is asked is bounded: gardens, seeds and shoots, and fleets with their members.
func TestAllAnswersAreBounded(t *testing.T) {
	kubeconfig := clientcmdapi.NewConfig()
	kubeconfig.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://c.example"}
	kubeconfig.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	kubeconfig.CurrentContext = "c"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfig, path); err != nil {
		t.Fatal(err)
	}
	ofSeed, err := restConfigOf(kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	ofGarden, err := (&Garden{Name: "g", Kubeconfig: path}).restConfig()
	if err != nil {
		t.Fatal(err)
	}
	ofFleet, _, err := (&cli{}).fleetConfig(t.Context(), fleetAccess{kubeconfig: path})
	if err != nil {
		t.Fatal(err)
	}
	ofMember := (&Fleet{Config: ofFleet}).memberConfig("a")
	for what, config := range map[string]*rest.Config{
		"seed": ofSeed, "garden": ofGarden, "fleet": ofFleet, "member": ofMember,
	} {
		if config.WrapTransport == nil {
			t.Errorf("answers of a %s are not bounded", what)
			continue
		}
		if _, ok := config.WrapTransport(http.DefaultTransport).(*boundedTransport); !ok {
			t.Errorf("answers of a %s are not bounded", what)
		}
	}
}
