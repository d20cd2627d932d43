package main

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Whatever is in the definitions of our groups and can be reached from a kind is on a page, with its description.
func TestEveryFieldIsDescribed(t *testing.T) {
	r := newReference(definitions())
	pages := r.pages()
	for name, definition := range r.definitions {
		parsed := parseModel(name)
		content := pages[parsed.page()]
		if !isOwn(name) || !strings.Contains(content, "\n### "+parsed.name+"\n") {
			continue // of another group, a list, or used by no kind
		}
		for _, field := range fieldsOf(definition) {
			if fieldDescription(field) == "" {
				t.Errorf("%s: field %s has no description", name, field.name)
			}
			if !strings.Contains(content, "`"+field.name+"`") ||
				!strings.Contains(content, cell(fieldDescription(field))) {
				t.Errorf("%s: field %s is not on its page", name, field.name)
			}
		}
	}
	for kind, page := range map[string]string{
		"Shoot": "core-v1beta1.md", "Seed": "core-v1beta1.md", "CloudProfile": "core-v1beta1.md",
		"Project":           "core-v1beta1.md",
		"PropagationPolicy": "policy-v1alpha1.md", "Work": "work-v1alpha1.md", "ResourceBinding": "work-v1alpha2.md",
		"FleetGrowth": "fleet-v1alpha1.md", "FleetConfig": "federation-v1alpha1.md",
		"ResourceInterpreterContext": "config-v1alpha1.md",
		"Extension":                  "extensions-v1alpha1.md", "ManagedResource": "resources-v1alpha1.md",
	} {
		if !strings.Contains(pages[page], "\n### "+kind+"\n") ||
			!strings.Contains(pages["README.md"], "["+kind+"]("+page+"#") {
			t.Errorf("kind %s has no section in %s", kind, page)
		}
	}
}

// Links lead somewhere.
func TestLinksHaveTargets(t *testing.T) {
	pages := newReference(definitions()).pages()
	for name, content := range pages {
		for _, part := range strings.Split(content, "](")[1:] {
			link, _, _ := strings.Cut(part, ")")
			page, anchor, _ := strings.Cut(link, "#")
			if page == "" {
				page = name
			}
			if anchor != "" && !strings.Contains(strings.ToLower(pages[page]), "\n### "+anchor+"\n") {
				t.Errorf("%s: link %s leads nowhere", name, link)
			}
			if pages[page] == "" {
				t.Errorf("%s: link %s leads to no page", name, link)
			}
		}
	}
}

// A page is of one group only, and the list names each once.
func TestPagesAreNotShared(t *testing.T) {
	all := definitions()
	groups := map[string]string{}
	for name := range all {
		parsed := parseModel(name)
		page := parsed.page()
		if group, found := groups[page]; page != "" && found && group != parsed.group {
			t.Errorf("%s is the page of %s and %s", page, group, parsed.group)
		}
		groups[page] = parsed.group
	}
	pages := newReference(all).pages()
	for page := range pages {
		if page != "README.md" && strings.Count(pages["README.md"], "]("+page+")") != 1 {
			t.Errorf("README.md does not list %s once", page)
		}
	}
}

func TestRendering(t *testing.T) {
	text := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, Description: "One of a|b.\nSee <c>."}}
	kind := spec.Schema{SchemaProps: spec.SchemaProps{Type: []string{"string"}, Description: ofObjects["kind"]}}
	other := *spec.RefSchema(modelReference + "cloud.gardener.core.v1beta1.Other")
	definitions := map[string]spec.Schema{
		"cloud.gardener.core.v1beta1.Thing": {SchemaProps: spec.SchemaProps{
			Description: "Thing is a kind.", Required: []string{"spec"},
			Properties: map[string]spec.Schema{
				"kind": kind, "metadata": *spec.RefSchema(modelReference +
					"io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"),
				"spec": other, "others": *spec.ArrayProperty(&other), "map": *spec.MapProperty(&text), "text": text,
			},
		}},
		"cloud.gardener.core.v1beta1.Other": {
			SchemaProps: spec.SchemaProps{Description: "Other is a type.", Properties: map[string]spec.Schema{
				"kind": {SchemaProps: spec.SchemaProps{Type: []string{"string"}, Description: "Kind that is meant."}},
				"number": {
					SchemaProps: spec.SchemaProps{Type: []string{"integer"}, Format: "int32", Description: "A number."},
				},
			}},
		},
	}
	page := newReference(definitions).pages()["core-v1beta1.md"]
	for _, want := range []string{
		"# core.gardener.cloud/v1beta1\n", "### Thing\n\nThing is a kind.\n", "### Other\n\nOther is a type.\n",
		"| **`spec`** | [Other](#other) |", "| `others` | list of [Other](#other) |", "| `map` | map to string |",
		"| `metadata` | ObjectMeta |", `| One of a\|b. See &lt;c&gt;. |`, "| `kind` | string | The kind's name. |",
		"| `kind` | string | Kind that is meant. |", "| `number` | integer (int32) | A number. |",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q:\n%s", want, page)
		}
	}
}
