package main

import (
	"fmt"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"strconv"
	"strings"
)

// packageNames says how packages are called in files that import them, where that is not what most do or they disagree.
var packageNames = map[string]string{
	module + "/pkg/apis/core/v1":                        "gardencorev1",
	module + "/pkg/apis/core/v1beta1":                   "gardencorev1beta1",
	module + "/pkg/component/egress":                    "egresscomponent",
	module + "/pkg/component/etcd":                      "etcdcomponent",
	"k8s.io/api/admissionregistration/v1":               "admissionregistrationv1",
	"k8s.io/apimachinery/pkg/api/equality":              "apiequality",
	"k8s.io/apimachinery/pkg/apis/meta/v1":              "metav1",
	"k8s.io/apimachinery/pkg/util/json":                 "utiljson",
	"k8s.io/apimachinery/pkg/util/rand":                 "utilrand",
	"k8s.io/apimachinery/pkg/util/yaml":                 "utilyaml",
	"k8s.io/apiserver/pkg/endpoints/openapi":            "openapinamer",
	"k8s.io/apiserver/pkg/endpoints/request":            "apirequest",
	"k8s.io/client-go/kubernetes/fake":                  "kubernetesfake",
	"k8s.io/client-go/kubernetes/scheme":                "clientgoscheme",
	"k8s.io/client-go/tools/cache":                      "toolscache",
	"k8s.io/client-go/tools/clientcmd/api":              "clientcmdapi",
	"k8s.io/client-go/util/cert":                        "certutil",
	"k8s.io/utils/clock/testing":                        "clocktesting",
	"sigs.k8s.io/controller-runtime/pkg/config":         "ctrlconfig",
	"sigs.k8s.io/controller-runtime/pkg/metrics/server": "metricsserver",
}

var (
	majorVersion  = regexp.MustCompile(`^v\d+$`)
	dottedVersion = regexp.MustCompile(`\.v\d+$`)
)

// imported is one import of a file.
type imported struct {
	spec       *ast.ImportSpec
	path, name string
}

// importsOf returns the imports of a file that have a name.
func importsOf(file *ast.File) []imported {
	var all []imported
	for _, spec := range file.Imports {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		name := defaultName(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if name != "_" && name != "." {
			all = append(all, imported{spec, importPath, name})
		}
	}
	return all
}

// defaultName is what a package is called when the import does not say: the last part of its path that is no major
// version. For the few packages that call themselves otherwise it is at least the same everywhere.
func defaultName(importPath string) string {
	name := path.Base(importPath)
	if majorVersion.MatchString(name) && !strings.Contains(importPath, "k8s.io/") &&
		!strings.HasPrefix(importPath, module) {
		name = path.Base(path.Dir(importPath))
	}
	return strings.TrimPrefix(dottedVersion.ReplaceAllString(name, ""), "go-")
}

// wantedNames says how each package is called: as packageNames has it, else as most files do.
func wantedNames(t tree) map[string]string {
	counts := map[string]map[string]int{}
	for _, s := range t.sources {
		for _, i := range importsOf(s.file) {
			if counts[i.path] == nil {
				counts[i.path] = map[string]int{}
			}
			counts[i.path][i.name]++
		}
	}
	wanted := map[string]string{}
	for importPath, of := range counts {
		if name, known := packageNames[importPath]; known {
			wanted[importPath] = name
			continue
		}
		best := ""
		for name, n := range of {
			if best == "" || n > of[best] || n == of[best] && name < best {
				best = name
			}
		}
		wanted[importPath] = best
	}
	return wanted
}

// misnamed returns the imports of a file that have another name than everywhere, by their wanted names. One may when
// the file needs that name for something else.
func misnamed(t tree, s source, wanted map[string]string) map[string]imported {
	all := importsOf(s.file)
	taken := maps.Clone(t.declared[s.folder()])
	for _, i := range all {
		taken[i.name] = true
	}
	wrong := map[string]imported{}
	for _, i := range all {
		if name := wanted[i.path]; name != i.name && !taken[name] && !declares(s.file, name) {
			wrong[name] = i
		}
	}
	return wrong
}

// declares tells whether something within the functions of a file has a name.
func declares(file *ast.File, name string) bool {
	found := false
	ast.Inspect(file, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name && id.Obj != nil {
			found = true
		}
		return !found
	})
	return found
}

// names finds imports that have another name than everywhere.
func names(t tree) []finding {
	var found []finding
	wanted := wantedNames(t)
	for _, s := range t.sources {
		for name, i := range misnamed(t, s, wanted) {
			found = append(found, finding{
				i.spec.Pos(), fmt.Sprintf("%s is called %s here and %s elsewhere", i.path, i.name, name),
			})
		}
	}
	return found
}
