package component

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// SortedFlags returns flags as "--name=value", sorted, so that equal values give equal pods.
func SortedFlags(flags map[string]string) []string {
	list := make([]string, 0, len(flags))
	for _, name := range slices.Sorted(maps.Keys(flags)) {
		list = append(list, "--"+name+"="+flags[name])
	}
	return list
}

// Switches returns feature gates and the like as "a=true,b=false", sorted.
func Switches(values map[string]bool) string {
	list := make([]string, 0, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+"="+strconv.FormatBool(values[name]))
	}
	return strings.Join(list, ",")
}
