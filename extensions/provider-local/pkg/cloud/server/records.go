package server

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"

	"github.com/trellis-garden/trellis/extensions/provider-local/pkg/cloud/api"
)

// records holds the DNS records of the zone.
type records struct {
	mu     sync.RWMutex
	zone   string
	store  store[api.Record]
	byName map[string]api.Record
	// fixed are the operator's: not stored, and not for clients to change.
	fixed map[string]api.Record
}

func newRecords(stateDir, zone string, fixed []api.Record) *records {
	result := &records{
		zone:   api.CanonicalName(zone),
		store:  store[api.Record]{dir: filepath.Join(stateDir, "state", "records")},
		byName: map[string]api.Record{}, fixed: map[string]api.Record{},
	}
	for _, record := range fixed {
		record.FQDN = api.CanonicalName(record.FQDN)
		result.fixed[record.FQDN] = record
	}
	return result
}

func (r *records) restore() error {
	loaded, err := r.store.load()
	if err != nil {
		return fmt.Errorf("loading the DNS records: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range loaded {
		r.byName[record.FQDN] = record
	}
	for name, record := range r.fixed {
		if err := r.check(record); err != nil {
			return fmt.Errorf("records of the operator: %w", err)
		}
		r.byName[name] = record
	}
	return nil
}

// check says what is wrong with a record.
func (r *records) check(record api.Record) error {
	if err := record.Validate(); err != nil {
		return fmt.Errorf("%w: %w", errInvalid, err)
	}
	if !inZone(record.FQDN, r.zone) {
		return fmt.Errorf("%w: record %s is not in the zone %s of this cloud", errInvalid, record.FQDN, r.zone)
	}
	return nil
}

// checkFree says whether a record is for clients to change.
func (r *records) checkFree(fqdn string) error {
	if _, taken := r.fixed[fqdn]; taken {
		return fmt.Errorf("%w: record %s is the operator's of this cloud", errInvalid, fqdn)
	}
	return nil
}

func (r *records) put(record api.Record) error {
	record.FQDN = api.CanonicalName(record.FQDN)
	if err := r.check(record); err != nil {
		return err
	}
	if err := r.checkFree(record.FQDN); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.put(fileName(record.FQDN), record); err != nil {
		return fmt.Errorf("record %s: %w", record.FQDN, err)
	}
	r.byName[record.FQDN] = record
	return nil
}

func (r *records) remove(fqdn string) error {
	fqdn = api.CanonicalName(fqdn)
	if err := r.checkFree(fqdn); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.store.remove(fileName(fqdn)); err != nil {
		return fmt.Errorf("record %s: %w", fqdn, err)
	}
	delete(r.byName, fqdn)
	return nil
}

func (r *records) get(fqdn string) (api.Record, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	record, ok := r.byName[api.CanonicalName(fqdn)]
	return record, ok
}

// lookup finds the record for a name: its own, or that of the closest wildcard within the zone. exists also holds for
// names that have no record but lie above one that has: such a name has no data, yet it does exist.
func (r *records) lookup(fqdn string) (record api.Record, found, exists bool) {
	fqdn = api.CanonicalName(fqdn)
	r.mu.RLock()
	defer r.mu.RUnlock()
	if record, found = r.byName[fqdn]; found {
		return record, true, true
	}
	for name := range r.byName {
		if strings.HasSuffix(name, "."+fqdn) {
			return api.Record{}, false, true
		}
	}
	for parent := fqdn; inZone(parent, r.zone); {
		_, rest, ok := strings.Cut(parent, ".")
		if !ok {
			break
		}
		if record, found = r.byName["*."+rest]; found {
			return record, true, true
		}
		parent = rest
	}
	return api.Record{}, false, fqdn == r.zone
}

func inZone(fqdn, zone string) bool {
	return fqdn == zone || strings.HasSuffix(fqdn, "."+zone)
}

// fileName escapes the star of wildcard names.
func fileName(fqdn string) string { return url.QueryEscape(fqdn) }
