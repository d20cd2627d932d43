package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

const (
	// modelReference begins references to definitions.
	modelReference = "#/definitions/"
	// ownModels begins the model names of our groups, which are the groups' names backwards.
	ownModels = "cloud.gardener."
)

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

// page is the name of the file that describes a model; empty when none does.
func (m model) page() string {
	short, rest, _ := strings.Cut(m.group, ".")
	if rest != "gardener.cloud" {
		return ""
	}
	return short + "-" + m.version + ".md"
}

func (m model) groupVersion() string { return m.group + "/" + m.version }

// pages returns the pages by file name, with a list of them in README.md.
func (r *reference) pages() map[string]string {
	byPage := map[string][]string{}
	for name := range r.definitions {
		if strings.HasPrefix(name, ownModels) {
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
	out.WriteString("# The garden's API\n\n")
	out.WriteString("Every kind and every field, made by `make generate` from the comments in `pkg/apis`. `kubectl explain` shows the same.\n")
	for _, page := range slices.Sorted(maps.Keys(byPage)) {
		models := byPage[page]
		slices.Sort(models)
		fmt.Fprintf(&out, "\n## [%s](%s)\n\n", parseModel(models[0]).groupVersion(), page)
		for _, kind := range r.kinds(models) {
			fmt.Fprintf(&out, "- [%s](%s#%s): %s\n", parseModel(kind).name, page, anchor(kind), firstSentence(r.definitions[kind].Description))
		}
	}
	return out.String()
}

// page describes one group and version: its kinds, then the types they are made of, in the order in which they are met.
func (r *reference) page(models []string) string {
	first := parseModel(models[0])
	kinds := r.kinds(models)
	var out strings.Builder
	fmt.Fprintf(&out, "# %s\n\nMade from the comments in `pkg/apis` by `make generate`. Fields in **bold** are required.\n\n", first.groupVersion())
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
		_, isObject := properties["kind"]
		_, hasMetadata := properties["metadata"]
		_, isList := properties["items"]
		if isObject && hasMetadata && !isList && strings.HasPrefix(name, ownModels) {
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
			if !strings.HasPrefix(name, ownModels) || seen[name] || slices.Contains(kinds, name) {
				continue
			}
			seen[name] = true
			found = append(found, name)
			queue = append(queue, name)
		}
	}
	return found
}
