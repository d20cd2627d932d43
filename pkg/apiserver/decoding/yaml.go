package decoding

import (
	"bytes"
	"regexp"

	"sigs.k8s.io/yaml"
)

// maxYAMLMarks is the most characters of a YAML document that can begin a value: reading YAML takes far longer than
// reading JSON.
const maxYAMLMarks = MaxValues

// yamlAnchor matches where a value is given a name, by which it can be repeated.
var yamlAnchor = regexp.MustCompile(`(^|[\s,\[{])&[0-9A-Za-z_-]`)

// scanYAML counts the values of a YAML document. Clients mostly send JSON as YAML, which is counted as such; other
// documents are translated as the decoders do it, once it is sure that this takes little.
func scanYAML(data []byte, c *counter, managed *managedFields) *refusal {
	before := *c
	if r := scanJSON(data, c, managed); r == nil || !r.syntax {
		return r
	}
	*c, *managed = before, managedFields{}
	if marks := yamlMarks(data); marks > maxYAMLMarks {
		return tooLarge("the YAML has %d lines and characters that begin a value, at most %d are allowed; send JSON",
			marks, maxYAMLMarks)
	}
	if at := yamlAnchor.FindIndex(data); at != nil {
		return malformed("byte %d of the YAML is an anchor, which is not accepted: write the value where it is used",
			at[1]-2)
	}
	translated, err := yaml.YAMLToJSON(data)
	if err != nil {
		return malformed("%v", err)
	}
	return scanJSON(translated, c, managed)
}

// yamlMarks returns at least the number of values of a YAML document.
func yamlMarks(data []byte) int {
	marks := 1
	for i, b := range data {
		switch b {
		case '\n', '\r', ',', '[', '{':
			marks++
		case '-', '?', ':':
			if i+1 == len(data) || bytes.IndexByte([]byte(" \t\r\n"), data[i+1]) >= 0 {
				marks++
			}
		}
	}
	return marks
}
