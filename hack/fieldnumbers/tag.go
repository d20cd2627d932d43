package main

import (
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"reflect"
	"strconv"
	"strings"
)

// notMessage in a type's comment says that the type never goes over the wire as protobuf.
const notMessage = "+protobuf=false"

// tag returns a file's source with a protobuf tag on every field of its exported structs. Tags that are there stay, and
// are recorded in numbers.
func tag(numbers *Numbers, folder string, source []byte) ([]byte, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, "", source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var tagged strings.Builder
	done := 0
	for _, message := range messages(file) {
		for _, field := range fields(message) {
			missing, err := numberField(numbers, folder+"."+message.Name.Name, field)
			if err != nil {
				return nil, err
			}
			if missing == "" {
				continue
			}
			end := files.Position(field.Tag.End()).Offset - len("`")
			tagged.Write(source[done:end])
			tagged.WriteString(" " + missing)
			done = end
		}
	}
	tagged.Write(source[done:])
	return format.Source([]byte(tagged.String()))
}

// messages are the exported structs of a file that have a protobuf form.
func messages(file *ast.File) []*ast.TypeSpec {
	var found []*ast.TypeSpec
	for _, declaration := range file.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, one := range types.Specs {
			spec := one.(*ast.TypeSpec)
			if _, isStruct := spec.Type.(*ast.StructType); isStruct && spec.Name.IsExported() &&
				!excluded(types.Doc, spec.Doc) {
				found = append(found, spec)
			}
		}
	}
	return found
}

func excluded(comments ...*ast.CommentGroup) bool {
	for _, comment := range comments {
		if comment == nil {
			continue
		}
		for _, line := range comment.List {
			if strings.TrimSpace(strings.TrimPrefix(line.Text, "//")) == notMessage {
				return true
			}
		}
	}
	return false
}

// fields are those of a struct that JSON knows, or that have a number already. Type and version are not among them:
// they lie in the envelope.
func fields(message *ast.TypeSpec) []*ast.Field {
	var found []*ast.Field
	for _, field := range message.Type.(*ast.StructType).Fields.List {
		if field.Tag == nil || typeName(field.Type) == "TypeMeta" {
			continue
		}
		if name, _, _ := strings.Cut(tagOf(field).Get("json"), ","); name != "-" || tagOf(field).Get("protobuf") != "" {
			found = append(found, field)
		}
	}
	return found
}

// numberField returns the tag that a field lacks, or nothing if it has one.
func numberField(numbers *Numbers, message string, field *ast.Field) (string, error) {
	name := fieldName(field)
	existing := tagOf(field).Get("protobuf")
	if existing == "" {
		return fmt.Sprintf("protobuf:%q", fmt.Sprintf("bytes,%d,opt,name=%s", numbers.of(message, name), name)), nil
	}
	parts := strings.Split(existing, ",")
	if len(parts) < 2 {
		return "", fmt.Errorf("%s: field %s: tag protobuf:%q names no number: remove it", message, name, existing)
	}
	number, err := strconv.Atoi(parts[1])
	if err != nil {
		return "", fmt.Errorf("%s: field %s: tag protobuf:%q names no number: remove it", message, name, existing)
	}
	return "", numbers.add(message, name, number)
}

// fieldName is the name in a field's tag, else that in JSON. What JSON has inline is a field of its own in protobuf,
// named after its type.
func fieldName(field *ast.Field) string {
	for _, part := range strings.Split(tagOf(field).Get("protobuf"), ",") {
		if name, found := strings.CutPrefix(part, "name="); found {
			return name
		}
	}
	name, _, _ := strings.Cut(tagOf(field).Get("json"), ",")
	if name == "" {
		typed := typeName(field.Type)
		return strings.ToLower(typed[:1]) + typed[1:]
	}
	return name
}

func typeName(expression ast.Expr) string {
	switch typed := expression.(type) {
	case *ast.Ident:
		return typed.Name
	case *ast.SelectorExpr:
		return typed.Sel.Name
	case *ast.StarExpr:
		return typeName(typed.X)
	default:
		return ""
	}
}

func tagOf(field *ast.Field) reflect.StructTag {
	if field.Tag == nil {
		return ""
	}
	text, err := strconv.Unquote(field.Tag.Value)
	if err != nil {
		return ""
	}
	return reflect.StructTag(text)
}
