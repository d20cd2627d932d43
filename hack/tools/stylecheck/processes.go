package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// processes are the folders of code that runs in one process only, by the names of the processes. Code of an
// extension is below its folder of extensions.
var processes = map[string]string{
	"pkg/apiserver": "garden-apiserver", "pkg/clusterautoscaler": "cluster-autoscaler",
	"pkg/controllermanager": "garden-controller-manager", "pkg/egress": "vpn", "pkg/etcd": "etcd-steward",
	"pkg/federation": "federation", "pkg/gardenlet": "gardenlet", "pkg/landscape": "landscape",
	"pkg/nodeagent": "node-agent", "pkg/resourcemanager": "resource-manager", "pkg/scheduler": "garden-scheduler",
	"pkg/trellisctl": "trellisctl", "pkg/vpn": "vpn",
}

// namePattern is the form of users, groups and roles that are named for a domain, and of keys.
var namePattern = regexp.MustCompile(`^([a-z0-9-]+\.)*(gardener\.cloud|trellis\.garden)[:/]`)

// processOf names the process that a folder is part of; empty for libraries.
func processOf(folder string) string {
	parts := strings.Split(folder, "/")
	switch {
	case len(parts) > 1 && parts[0] == "cmd":
		return parts[1]
	case len(parts) > 1 && parts[0] == "extensions" && parts[1] != "pkg":
		return "extension " + parts[1]
	case len(parts) > 1:
		return processes[path.Join(parts[:2]...)]
	}
	return ""
}

// sharedKeys finds uses of a key that is a constant of another process's package.
func sharedKeys(t tree) []finding {
	declared := map[string]map[string]bool{}
	for _, s := range t.sources {
		if s.isTest() || processOf(s.folder()) == "" {
			continue
		}
		eachConstant(s.file, func(name, value string) {
			if !isKey(value) && (!namePattern.MatchString(value) || versionPattern.MatchString(value)) {
				return
			}
			if declared[s.folder()] == nil {
				declared[s.folder()] = map[string]bool{}
			}
			declared[s.folder()][name] = true
		})
	}
	var found []finding
	for _, s := range t.sources {
		if !s.isTest() {
			found = append(found, foreignKeys(s, declared)...)
		}
	}
	return found
}

// foreignKeys finds what a file uses of the keys that other processes' packages, by their folders, declare.
func foreignKeys(s source, declared map[string]map[string]bool) []finding {
	folders := map[string]string{}
	for _, i := range importsOf(s.file) {
		folder := strings.TrimPrefix(i.path, module+"/")
		if declared[folder] != nil && processOf(folder) != processOf(s.folder()) {
			folders[i.name] = folder
		}
	}
	var found []finding
	ast.Inspect(s.file, func(n ast.Node) bool {
		selector, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := selector.X.(*ast.Ident)
		if ok && id.Obj == nil && declared[folders[id.Name]][selector.Sel.Name] {
			found = append(found, finding{selector.Pos(), fmt.Sprintf(
				"%s.%s is a key that %s shares with others: it belongs into pkg/apis", id.Name, selector.Sel.Name,
				processOf(folders[id.Name]))})
		}
		return true
	})
	return found
}

// eachConstant calls a function for the exported constants of a file that are untyped texts.
func eachConstant(file *ast.File, visit func(name, value string)) {
	for _, declaration := range file.Decls {
		group, ok := declaration.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			values := spec.(*ast.ValueSpec)
			for i, value := range values.Values {
				if text, ok := constant(value); ok && values.Type == nil && values.Names[i].IsExported() {
					visit(values.Names[i].Name, text)
				}
			}
		}
	}
}
