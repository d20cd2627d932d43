package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// modelReference begins references to definitions.
const modelReference = "#/definitions/"

// ofObjects describes the fields apiVersion and kind of objects. References to objects have fields of the same names.
var ofObjects = metav1.TypeMeta{}.SwaggerDoc()

// ownGroups end the names of our groups.
var ownGroups = []string{".gardener.cloud", ".karmada.io", ".trellis.garden"}

// parts are the chapters of the list of pages, in their order.
var parts = []struct{ title, text string }{
	{garden, "What people order clusters with. The garden serves it."},
	{fleets, "What people place objects in clusters with. A fleet serves it."},
	{settings, "The providerConfig of the extension federation in a Shoot: the settings of its fleet."},
	{seeds, "How gardenlet asks extensions and resource-manager for their parts of a cluster. Seeds serve it."},
}

const (
	garden   = "Garden"
	fleets   = "Fleets"
	settings = "Settings"
	seeds    = "Seeds"
)

// partOf is the chapter that a group belongs to.
func partOf(group string) string {
	switch {
	case group == "extensions.gardener.cloud" || group == "resources.gardener.cloud":
		return seeds
	case strings.HasSuffix(group, ".gardener.cloud"):
		return garden
	case strings.HasSuffix(group, ".extensions.trellis.garden"):
		return settings
	}
	return fleets
}

// reference is the whole API.
type reference struct {
	definitions map[string]spec.Schema
	// types are the models that kinds are made of, in the order in which they are met; the kinds themselves left out.
	types []string
}

// model is a definition's name taken apart.
type model struct {
	// group and version are those of the API; kubernetes' own models have the name of their package as group.
	group, version, name string
}

func newReference(definitions map[string]spec.Schema) *reference {
	r := &reference{definitions: definitions}
	r.types = r.reached(r.kinds(slices.Sorted(maps.Keys(definitions))))
	return r
}

// parseModel takes a model name apart: cloud.gardener.core.v1beta1.Shoot is Shoot of core.gardener.cloud/v1beta1.
func parseModel(name string) model {
	parts := strings.Split(name, ".")
	if len(parts) < 3 {
		return model{name: name}
	}
	group := slices.Clone(parts[:len(parts)-2])
	slices.Reverse(group)
	return model{group: strings.Join(group, "."), version: parts[len(parts)-2], name: parts[len(parts)-1]}
}

// isOwn tells whether a model is one of our groups.
func isOwn(name string) bool { return parseModel(name).page() != "" }

// page is the name of the file that describes a model; empty when none does. Our groups differ in the first part of
// their names.
func (m model) page() string {
	if !slices.ContainsFunc(ownGroups, func(end string) bool { return strings.HasSuffix(m.group, end) }) {
		return ""
	}
	short, _, _ := strings.Cut(m.group, ".")
	return short + "-" + m.version + ".md"
}

func (m model) groupVersion() string { return m.group + "/" + m.version }

// pages returns the pages by file name, with a list of them in README.md.
func (r *reference) pages() map[string]string {
	byPage := map[string][]string{}
	for name := range r.definitions {
		if isOwn(name) {
			page := parseModel(name).page()
			byPage[page] = append(byPage[page], name)
		}
	}
	result := map[string]string{"README.md": r.index(byPage)}
	for page, models := range byPage {
		slices.Sort(models)
		result[page] = r.page(models)
	}
	return result
}

func (r *reference) index(byPage map[string][]string) string {
	var out strings.Builder
	out.WriteString("# The API\n\n")
	out.WriteString("Every kind and every field, made by `make generate` from the comments in the code. `kubectl " +
		"explain` shows the same where it is served.\n")
	for _, part := range parts {
		fmt.Fprintf(&out, "\n## %s\n\n%s\n", part.title, part.text)
		for _, page := range slices.Sorted(maps.Keys(byPage)) {
			if models := byPage[page]; partOf(parseModel(models[0]).group) == part.title {
				r.list(&out, page, models)
			}
		}
	}
	return out.String()
}

// list names the kinds of a page.
func (r *reference) list(out *strings.Builder, page string, models []string) {
	slices.Sort(models)
	fmt.Fprintf(out, "\n### [%s](%s)\n\n", parseModel(models[0]).groupVersion(), page)
	for _, kind := range r.kinds(models) {
		fmt.Fprintf(out, "- [%s](%s#%s): %s\n", parseModel(kind).name, page, anchor(kind),
			firstSentence(r.definitions[kind].Description))
	}
}

// page describes one group and version: its kinds, then the types they are made of, in the order in which they are met.
func (r *reference) page(models []string) string {
	first := parseModel(models[0])
	kinds := r.kinds(models)
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\nMade from the comments in the code by `make generate`. Fields in **bold** are "+
		"required.\n\n", first.groupVersion())
	for _, kind := range kinds {
		fmt.Fprintf(&out, "- [%s](#%s)\n", parseModel(kind).name, anchor(kind))
	}
	out.WriteString("\n## Kinds\n")
	for _, kind := range kinds {
		r.describe(&out, kind)
	}
	out.WriteString("\n## Types\n")
	for _, name := range r.types {
		if parseModel(name).page() == first.page() {
			r.describe(&out, name)
		}
	}
	return out.String()
}

// kinds are those of the models that are objects of their own in our groups; lists of them are not worth a section.
func (r *reference) kinds(models []string) []string {
	var kinds []string
	for _, name := range models {
		properties := r.definitions[name].Properties
		_, isList := properties["items"]
		if isOwn(name) && !isList && properties["kind"].Description == ofObjects["kind"] {
			kinds = append(kinds, name)
		}
	}
	return kinds
}

// reached are the models of our groups that kinds refer to, however deep.
func (r *reference) reached(kinds []string) []string {
	var found []string
	seen := map[string]bool{}
	for queue := slices.Clone(kinds); len(queue) > 0; queue = queue[1:] {
		for _, field := range fieldsOf(r.definitions[queue[0]]) {
			name := target(field.schema)
			if !isOwn(name) || seen[name] || slices.Contains(kinds, name) {
				continue
			}
			seen[name] = true
			found = append(found, name)
			queue = append(queue, name)
		}
	}
	return found
}
