package main

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/kube-openapi/pkg/validation/spec"
)

// field is a property of a definition.
type field struct {
	name     string
	required bool
	schema   spec.Schema
}

// leading are the fields that every object begins with, in this order; the others follow by name.
var leading = []string{"apiVersion", "kind", "metadata", "spec", "status"}

// fieldsOf returns the properties of a definition in the order in which they are described.
func fieldsOf(definition spec.Schema) []field {
	fields := make([]field, 0, len(definition.Properties))
	for name, schema := range definition.Properties {
		fields = append(fields, field{name: name, required: slices.Contains(definition.Required, name), schema: schema})
	}
	slices.SortFunc(fields, func(a, b field) int {
		if rankA, rankB := rank(a.name), rank(b.name); rankA != rankB {
			return rankA - rankB
		}
		return strings.Compare(a.name, b.name)
	})
	return fields
}

func rank(name string) int {
	if i := slices.Index(leading, name); i >= 0 {
		return i
	}
	return len(leading)
}

// describe writes the section of a definition.
func (r *reference) describe(out *strings.Builder, name string) {
	definition := r.definitions[name]
	fmt.Fprintf(out, "\n### %s\n\n", parseModel(name).name)
	if definition.Description != "" {
		fmt.Fprintf(out, "%s\n\n", paragraph(definition.Description))
	}
	fields := fieldsOf(definition)
	if len(fields) == 0 {
		return
	}
	out.WriteString("| Field | Type | Description |\n|---|---|---|\n")
	for _, field := range fields {
		label := "`" + field.name + "`"
		if field.required {
			label = "**" + label + "**"
		}
		fmt.Fprintf(out, "| %s | %s | %s |\n", label, r.typeName(field.schema, parseModel(name).page()),
			cell(fieldDescription(field)))
	}
}

// fieldDescription is what the comment of a field says. What objects are of is told more briefly than Kubernetes does.
func fieldDescription(field field) string {
	switch field.schema.Description {
	case ofObjects["apiVersion"]:
		return "Group and version, as above."
	case ofObjects["kind"]:
		return "The kind's name."
	}
	return strings.TrimSpace(field.schema.Description)
}

// typeName names the type of a field, with a link to where it is described.
func (r *reference) typeName(schema spec.Schema, page string) string {
	switch {
	case target(schema) != "" && schema.Items == nil && schema.AdditionalProperties == nil:
		return link(target(schema), page)
	case schema.Type.Contains("array") && schema.Items != nil && schema.Items.Schema != nil:
		return "list of " + r.typeName(*schema.Items.Schema, page)
	case schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil:
		return "map to " + r.typeName(*schema.AdditionalProperties.Schema, page)
	case len(schema.Type) == 0:
		return "any"
	case schema.Format != "":
		return schema.Type[0] + " (" + schema.Format + ")"
	}
	return schema.Type[0]
}

// link names a model; those of Kubernetes are described there.
func link(name, page string) string {
	parsed := parseModel(name)
	switch parsed.page() {
	case "":
		return parsed.name
	case page:
		return fmt.Sprintf("[%s](#%s)", parsed.name, anchor(name))
	}
	return fmt.Sprintf("[%s](%s#%s)", parsed.name, parsed.page(), anchor(name))
}

// target is the model that a schema refers to, be it directly, as an element, or as a value.
func target(schema spec.Schema) string {
	if reference := schema.Ref.String(); reference != "" {
		return strings.TrimPrefix(reference, modelReference)
	}
	for _, part := range schema.AllOf {
		if name := target(part); name != "" {
			return name
		}
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		return target(*schema.Items.Schema)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		return target(*schema.AdditionalProperties.Schema)
	}
	return ""
}

// anchor is the name that readers of Markdown give a heading.
func anchor(name string) string { return strings.ToLower(parseModel(name).name) }

// cell fits a text into a table.
func cell(text string) string {
	return strings.ReplaceAll(paragraph(text), "|", `\|`)
}

// paragraph puts a text on one line and keeps what looks like markup as it is.
func paragraph(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	return strings.NewReplacer("<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`).Replace(text)
}

func firstSentence(text string) string {
	text = paragraph(text)
	if end := strings.Index(text, ". "); end >= 0 {
		return text[:end+1]
	}
	return text
}
