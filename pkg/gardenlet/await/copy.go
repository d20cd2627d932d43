package await

import (
	"fmt"
	"reflect"
)

// copyInto overwrites what the pointer into refers to with what from refers to; both are pointers to the same type.
func copyInto(from, into any) error {
	source, target := reflect.ValueOf(from), reflect.ValueOf(into)
	if source.Kind() != reflect.Pointer || source.Type() != target.Type() {
		return fmt.Errorf("cannot copy %T into %T", from, into)
	}
	target.Elem().Set(source.Elem())
	return nil
}
