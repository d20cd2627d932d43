package registry

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// table prints objects of a kind: the name, the columns of the kind, the age.
type table[T Object] struct{ kind *Kind[T] }

// ConvertToTable implements rest.TableConvertor.
func (t table[T]) ConvertToTable(_ context.Context, object, options runtime.Object) (*metav1.Table, error) {
	result := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || !o.NoHeaders {
		result.ColumnDefinitions = t.definitions()
	}
	addRow := func(item runtime.Object) error {
		typed, ok := item.(T)
		if !ok {
			return fmt.Errorf("cannot print a %T as %s", item, t.kind.Plural)
		}
		result.Rows = append(result.Rows,
			metav1.TableRow{Cells: t.cells(typed), Object: runtime.RawExtension{Object: item}})
		return nil
	}
	if !meta.IsListType(object) {
		if m, err := meta.CommonAccessor(object); err == nil {
			result.ResourceVersion = m.GetResourceVersion()
		}
		return result, addRow(object)
	}
	if m, err := meta.ListAccessor(object); err == nil {
		result.ResourceVersion, result.Continue, result.RemainingItemCount = m.GetResourceVersion(), m.GetContinue(),
			m.GetRemainingItemCount()
	}
	return result, meta.EachListItem(object, addRow)
}

func (t table[T]) definitions() []metav1.TableColumnDefinition {
	definitions := []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "The name of the object."},
	}
	for _, column := range t.kind.Columns {
		definition := metav1.TableColumnDefinition{
			Name: column.Name, Type: column.Type, Description: column.Description,
		}
		if definition.Type == "" {
			definition.Type = "string"
		}
		if column.Wide {
			definition.Priority = 1
		}
		definitions = append(definitions, definition)
	}
	return append(definitions, metav1.TableColumnDefinition{
		Name: "Age", Type: "string", Description: "Time since the object was created.",
	})
}

func (t table[T]) cells(object T) []any {
	cells := []any{object.GetName()}
	for _, column := range t.kind.Columns {
		cells = append(cells, column.Cell(object))
	}
	return append(cells, metatable.ConvertToHumanReadableDateType(object.GetCreationTimestamp()))
}
