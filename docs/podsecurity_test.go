package docs

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"github.com/trellis-garden/trellis/pkg/helm"
	"github.com/trellis-garden/trellis/pkg/images"
)

const podSecurityPage = "security-pods.md"

// withoutPods are packages that name pods but deploy none: they read or change those of others, or build parts that
// other packages use.
var withoutPods = map[string]string{
	"pkg/component":                        "the parts that all components are built of",
	"pkg/federation/interpreter":           "reads the pods of users' workloads",
	"pkg/component/connectproxy":           "what egress and vpnseedserver are built of",
	"pkg/federation/interpreter/script":    "reads the pods of users' workloads",
	"pkg/gardenlet/controllerinstallation": "changes the pods of extensions' charts",
}

// podTemplate is a pod that the product makes.
type podTemplate struct {
	// name is Kind/name, or just the name of a folder for what has none.
	name string
	// namespace that it names, and labels of the pod.
	namespace string
	labels    map[string]string
	spec      corev1.PodSpec
}

// Every pod that Trellis makes is as narrow as can be, but for the exceptions in the table; and every exception is
// needed.
func TestPodsAreAsNarrowAsTheTableSays(t *testing.T) {
	allowed, reasons := exceptions(t)
	found := map[string]map[string]bool{}
	for source, templates := range podTemplates(t) {
		for _, template := range templates {
			for where, what := range violations(template) {
				key := source + " " + where
				if found[key] == nil {
					found[key] = map[string]bool{}
				}
				for _, one := range what {
					found[key][one] = true
				}
			}
		}
	}
	summarizeExtensions(found, images.Extensions)
	for _, key := range slices.Sorted(maps.Keys(found)) {
		for _, what := range slices.Sorted(maps.Keys(found[key])) {
			if !allowed[key][what] {
				t.Errorf("%s: %s; mend it, or give a reason in docs/%s", key, what, podSecurityPage)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(allowed)) {
		for what := range allowed[key] {
			if !found[key][what] {
				t.Errorf("docs/%s: the exception %q of %s is not needed", podSecurityPage, what, key)
			}
		}
	}
	for key, reason := range reasons {
		if len(strings.Fields(reason)) < 4 {
			t.Errorf("docs/%s: %s has no reason", podSecurityPage, key)
		}
	}
}

// eachExtension is how the table names the pods of extensions where all are alike.
const eachExtension = "extensions/each Deployment/each"

// summarizeExtensions puts one exception in place of those that the pods of all extensions have. What only some have
// stays theirs.
func summarizeExtensions(found map[string]map[string]bool, extensions []images.Extension) {
	common := maps.Clone(found[extensionPod(extensions[0])])
	for _, e := range extensions {
		maps.DeleteFunc(common, func(what string, _ bool) bool { return !found[extensionPod(e)][what] })
	}
	for _, e := range extensions {
		maps.DeleteFunc(found[extensionPod(e)], func(what string, _ bool) bool { return common[what] })
	}
	found[eachExtension] = common
}

// An extension that has what all have needs no row of its own; what else it has does, and so does what others lack.
func TestOneRowStandsForEachExtension(t *testing.T) {
	first := images.Extension{Name: "one", Dir: "extensions/one"}
	second := images.Extension{Name: "provider-example", Dir: "extensions/provider-example"}
	const one, example = "extensions/one/charts/one Deployment/one",
		"extensions/provider-example/charts/provider-example Deployment/provider-example"
	found := map[string]map[string]bool{
		one: {"token": true}, example: {"token": true, "host-network": true},
		"extensions/pkg/worker Deployment/machine-controller-manager": {"token": true},
	}
	summarizeExtensions(found, []images.Extension{first, second})
	if !maps.Equal(found[eachExtension], map[string]bool{"token": true}) || len(found[one]) > 0 ||
		!maps.Equal(found[example], map[string]bool{"host-network": true}) ||
		len(found["extensions/pkg/worker Deployment/machine-controller-manager"]) != 1 {
		t.Errorf("got %v", found)
	}
	found = map[string]map[string]bool{one: {}, example: {"token": true}}
	if summarizeExtensions(found, []images.Extension{first, second}); len(found[eachExtension]) > 0 ||
		!found[example]["token"] {
		t.Errorf("a token that one has is that of each: %v", found)
	}
}

// Whoever adds a pod must add a golden file for it, else the table does not see it.
func TestPackagesWithPodsHaveGoldenFiles(t *testing.T) {
	templates := podTemplates(t)
	literal := regexp.MustCompile(`corev1\.Pod(Template)?Spec\{|ControlPlaneDeployment\(`)
	used := map[string]bool{}
	eachFile(t, ".go", func(path string, text []byte) {
		dir := filepath.Dir(path)
		switch top := strings.SplitN(path, "/", 2)[0]; {
		case top != "pkg" && top != "extensions" && top != "cmd", strings.HasSuffix(path, "_test.go"),
			strings.Contains(path, "zz_generated"), !literal.Match(text):
		case withoutPods[dir] != "":
			used[dir] = true
		case len(templates[dir]) == 0:
			t.Errorf("%s makes pods, but %s/testdata has no golden file with them", path, dir)
		}
	})
	for dir := range withoutPods {
		if !used[dir] {
			t.Errorf("%s no longer names pods", dir)
		}
	}
}

// What lies in the namespaces of shoots without workers must start where PodSecurity enforces its level restricted.
func TestControlPlanesFitTheRestrictedLevel(t *testing.T) {
	// restricted says nothing about these.
	free := map[string]bool{"token": true, "writable-root": true}
	all := podTemplates(t)
	for _, pod := range podsOf(t, all)["fleet"] {
		source, _, _ := strings.Cut(pod, " ")
		for _, template := range all[source] {
			if slices.ContainsFunc(template.spec.Volumes,
				func(volume corev1.Volume) bool { return volume.HostPath != nil }) {
				// Backups in a folder of the node: no shoot has that.
				continue
			}
			for where, what := range violations(template) {
				for _, one := range what {
					if !free[one] {
						t.Errorf("%s %s: %s", source, where, one)
					}
				}
			}
		}
	}
}

// exceptions reads the table: what is allowed to whom, and why.
func exceptions(t *testing.T) (allowed map[string]map[string]bool, reasons map[string]string) {
	t.Helper()
	page, err := os.ReadFile(podSecurityPage)
	if err != nil {
		t.Fatal(err)
	}
	allowed, reasons = map[string]map[string]bool{}, map[string]string{}
	quoted := regexp.MustCompile("`([^`]+)`")
	row := regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (.+?) \\| (.+?) \\|$")
	for _, match := range row.FindAllStringSubmatch(string(page), -1) {
		key := match[1] + " " + match[2]
		if allowed[key] == nil {
			allowed[key] = map[string]bool{}
		}
		for _, what := range quoted.FindAllStringSubmatch(match[3], -1) {
			allowed[key][what[1]] = true
		}
		reasons[key+" "+match[3]] = match[4]
	}
	if len(allowed) == 0 {
		t.Fatalf("docs/%s has no table", podSecurityPage)
	}
	return allowed, reasons
}

// violations are what a pod and its containers have beyond the least, by Kind/name for the pod and Kind/name:container.
func violations(template podTemplate) map[string][]string {
	result := map[string][]string{}
	if pod := podViolations(template.spec); len(pod) > 0 {
		result[template.name] = pod
	}
	for _, container := range slices.Concat(template.spec.InitContainers, template.spec.Containers) {
		if what := containerViolations(ptr.Deref(template.spec.SecurityContext, corev1.PodSecurityContext{}),
			container); len(what) > 0 {
			result[template.name+":"+container.Name] = what
		}
	}
	return result
}

func podViolations(spec corev1.PodSpec) []string {
	var what []string
	add := func(violated bool, name string) {
		if violated {
			what = append(what, name)
		}
	}
	add(ptr.Deref(spec.AutomountServiceAccountToken, true), "token")
	add(spec.HostNetwork, "host-network")
	add(spec.HostPID, "host-pid")
	add(spec.HostIPC, "host-ipc")
	for _, volume := range spec.Volumes {
		if volume.Projected != nil {
			add(slices.ContainsFunc(volume.Projected.Sources, func(source corev1.VolumeProjection) bool {
				return source.ServiceAccountToken != nil
			}), "token")
		}
		if volume.HostPath != nil {
			add(true, "host-path:"+volume.HostPath.Path)
		}
	}
	return what
}

func containerViolations(pod corev1.PodSecurityContext, container corev1.Container) []string {
	own := ptr.Deref(container.SecurityContext, corev1.SecurityContext{})
	var what []string
	add := func(violated bool, name string) {
		if violated {
			what = append(what, name)
		}
	}
	add(isRoot(pod, own), "root")
	add(!ptr.Deref(own.ReadOnlyRootFilesystem, false), "writable-root")
	for _, port := range container.Ports {
		add(port.HostPort != 0, "host-port")
	}
	if ptr.Deref(own.Privileged, false) {
		// Nothing of the rest holds a privileged container.
		return append(what, "privileged")
	}
	add(ptr.Deref(own.AllowPrivilegeEscalation, true), "escalation")
	profile := pod.SeccompProfile
	if own.SeccompProfile != nil {
		profile = own.SeccompProfile
	}
	add(profile == nil || profile.Type != corev1.SeccompProfileTypeRuntimeDefault, "seccomp")
	capabilities := ptr.Deref(own.Capabilities, corev1.Capabilities{})
	add(!slices.Equal(capabilities.Drop, []corev1.Capability{"ALL"}), "capabilities")
	for _, capability := range capabilities.Add {
		add(true, "capability:"+string(capability))
	}
	slices.Sort(what)
	return slices.Compact(what)
}

// isRoot says whether a container may run as root.
func isRoot(pod corev1.PodSecurityContext, own corev1.SecurityContext) bool {
	nonRoot, user := pod.RunAsNonRoot, pod.RunAsUser
	if own.RunAsNonRoot != nil {
		nonRoot = own.RunAsNonRoot
	}
	if own.RunAsUser != nil {
		user = own.RunAsUser
	}
	return !ptr.Deref(nonRoot, false) || ptr.Deref(user, 1) == 0
}

// podTemplates finds all pods: those of components in their golden files, those of charts with default values, those of
// a landscape's node in its files. They are listed by the folder of their package or chart.
func podTemplates(t *testing.T) map[string][]podTemplate {
	t.Helper()
	result := map[string][]podTemplate{}
	eachFile(t, ".yaml", func(path string, text []byte) {
		dir := filepath.Dir(path)
		switch {
		case strings.HasPrefix(path, "test/"), strings.HasPrefix(path, "pkg/apis/"):
		case filepath.Base(dir) == "testdata":
			result[filepath.Dir(dir)] = append(result[filepath.Dir(dir)], decodePods(t, path, text)...)
		case strings.HasPrefix(path, "pkg/landscape/files/"):
			filled := regexp.MustCompile(`port: {{[^}]*}}`).ReplaceAll(text, []byte("port: 1"))
			filled = regexp.MustCompile(`{{[^}]*}}`).ReplaceAll(filled, []byte("x"))
			result["pkg/landscape"] = append(result["pkg/landscape"], decodePods(t, path, filled)...)
		case filepath.Base(path) == "values.yaml":
			result[dir] = append(result[dir], chartPods(t, dir)...)
		}
	})
	return result
}

// chartValues are what charts require.
var chartValues = map[string]map[string]any{
	"local-cloud": {"token": "t", "otherNodes": true}, "local-issuer": {"host": "login.example"},
	"garden": {"dashboard": map[string]any{"enabled": true, "host": "dashboard.example"}},
}

func chartPods(t *testing.T, dir string) []podTemplate {
	t.Helper()
	var templates []podTemplate
	for name, text := range renderChart(t, dir) {
		if filepath.Ext(name) == ".yaml" {
			templates = append(templates, decodePods(t, name, []byte(text))...)
		}
	}
	return templates
}

// renderChart renders the files of a chart.
func renderChart(t *testing.T, dir string) map[string]string {
	t.Helper()
	loaded, err := helm.LoadFS(os.DirFS(filepath.Join(root, filepath.Dir(dir))), filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	values, err := chartutil.ToRenderValues(loaded, chartValues[loaded.Name()],
		chartutil.ReleaseOptions{Name: loaded.Name(), Namespace: "garden"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	return rendered
}

// workload matches objects with pods; some golden files are no objects, but what lies in them.
var workload = regexp.MustCompile(`(?m)^kind: (Pod|Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|CronJob)$`)

func decodePods(t *testing.T, path string, text []byte) []podTemplate {
	t.Helper()
	var templates []podTemplate
	for _, document := range strings.Split("\n"+string(text), "\n---\n") {
		if !workload.MatchString(document) {
			continue
		}
		template, err := decodePod([]byte(document))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		templates = append(templates, template)
	}
	return templates
}

// decodePod reads a workload.
func decodePod(document []byte) (podTemplate, error) {
	// Only a Pod and a CronJob have it elsewhere than a Deployment.
	pod, deployment, job := corev1.Pod{}, appsv1.Deployment{}, batchv1.CronJob{}
	kind := string(workload.FindSubmatch(document)[1])
	var err error
	switch kind {
	case "Pod":
		err = yaml.Unmarshal(document, &pod)
		return podTemplate{name: kind + "/" + pod.Name, namespace: pod.Namespace, labels: pod.Labels, spec: pod.Spec},
			err
	case "CronJob":
		err = yaml.Unmarshal(document, &job)
		template := job.Spec.JobTemplate.Spec.Template
		return podTemplate{
			name: kind + "/" + job.Name, namespace: job.Namespace, labels: template.Labels, spec: template.Spec,
		}, err
	default:
		err = yaml.Unmarshal(document, &deployment)
		template := deployment.Spec.Template
		return podTemplate{
			name: kind + "/" + deployment.Name, namespace: deployment.Namespace, labels: template.Labels,
			spec: template.Spec,
		}, err
	}
}

// eachFile calls do for the files of the tree that end in an extension, with their paths from its root.
func eachFile(t *testing.T, extension string, do func(path string, text []byte)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules"):
			return fs.SkipDir
		case filepath.Ext(path) != extension:
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			do(strings.TrimPrefix(path, root+"/"), text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
