package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

func TestValues(t *testing.T) {
	d := dataset{keys: 100, changed: 10}
	seen := map[string]bool{}
	for number := range d.keys {
		value := d.current(number)
		if seen[value] || len(value) < valueBytes || len(value) > valueBytes+valueBytes/50 ||
			!json.Valid([]byte(value)) {
			t.Fatalf("value %d of %d bytes came before, or is no JSON of %d bytes: %.100s", number, len(value),
				valueBytes, value)
		}
		seen[value] = true
		if value != d.current(number) || (value == valueOf(number, 0)) != (number >= d.changed) {
			t.Errorf("value %d is not the one that was written", number)
		}
	}
}

// Restoring what can be compressed too well, or not at all, would measure something else than Kubernetes' objects.
func TestValuesCanBeCompressed(t *testing.T) {
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	whole := 0
	for number := range 50 {
		n, err := writer.Write([]byte(valueOf(number, 0)))
		if err != nil {
			t.Fatal(err)
		}
		whole += n
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if ratio := float64(whole) / float64(packed.Len()); ratio < 1.5 || ratio > 4 {
		t.Errorf("%d bytes become %d, a ratio of %.1f", whole, packed.Len(), ratio)
	}
}

// A copy of a store has the same objects; what is deleted or added in it leaves the store as it is.
func TestStoreIsCopied(t *testing.T) {
	b := &restoreBench{folder: t.TempDir()}
	object := filepath.Join("main", "full-1")
	if err := os.MkdirAll(filepath.Join(b.path(storeFolder), "main"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.path(storeFolder), object), []byte("backup"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := b.linkStore(); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(filepath.Join(b.path(copyFolder), object))
		if err != nil || string(content) != "backup" {
			t.Errorf("got %q, %v", content, err)
		}
		if err := os.RemoveAll(b.path(copyFolder)); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := sizeOf(b.path(storeFolder)); err != nil || size != int64(len("backup")) {
		t.Errorf("the store has %d bytes, %v", size, err)
	}
}
