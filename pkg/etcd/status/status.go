// Package status is what etcd-steward tells of an etcd and its data, in JSON at Path beside /readyz, and how it is
// asked for that. What is told is not believed: who has taken an etcd over may answer anything.
package status

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Path is where a status is served.
const Path = "/status"

// Phase is what a steward is busy with.
type Phase string

// The phases.
const (
	Starting  Phase = "starting"
	Verifying Phase = "verifying the data"
	Restoring Phase = "restoring a backup"
	// Comparing is that of one of several members, whose etcd runs and serves nobody yet.
	Comparing Phase = "comparing the data with that of the other members"
	Awaiting  Phase = "restoring a backup: waiting for the store of backups"
	// AwaitingMembers and AwaitingQuorum are those of one of several members: before its etcd starts, and after it.
	AwaitingMembers Phase = "waiting for the other members"
	AwaitingQuorum  Phase = "waiting for a quorum of the members"
	Serving         Phase = "serving"
	Stopping        Phase = "stopping"
)

// Status of an etcd.
type Status struct {
	// Time is when this was told, by the steward's clock, which all times here are of.
	Time time.Time `json:"time"`
	// Phase is what the steward is busy with, and PhaseSince since when.
	Phase      Phase     `json:"phase"`
	PhaseSince time.Time `json:"phaseSince"`
	// Leads says that the member leads its etcd, and saves the changes: a single one does once it serves.
	Leads bool `json:"leads,omitempty"`
	// Recovering is a recovery that was begun and has not ended.
	Recovering *Recovery `json:"recovering,omitempty"`
	// Recoveries are those that have ended, the last one last, MostRecoveries at most. They are remembered on the
	// volume of the data.
	Recoveries []Recovery `json:"recoveries,omitempty"`
	// Differs is what the data is not, as it should be; nil if nothing is known of that. The volume remembers it.
	Differs *Difference `json:"differs,omitempty"`
	// Store has what became of the store of backups since the steward started; nil without a store.
	Store *Store `json:"store,omitempty"`
	// Space says how full the quota and the volume are; nothing before etcd serves.
	Space []Space `json:"space,omitempty"`
	// ReadOnly is why only reads and deletions are served (etcd's alarm NOSPACE); empty if writes are.
	ReadOnly string `json:"readOnly,omitempty"`
	// Skipped is what is not done because the volume has no room for it.
	Skipped []Skip `json:"skipped,omitempty"`
	// Certificates are those that clients are served with; nil without TLS.
	Certificates *Certificates `json:"certificates,omitempty"`
}

// Certificates are what clients are served with.
type Certificates struct {
	// Checksum is the CertificatesChecksum of what is in use.
	Checksum string `json:"checksum"`
	// Refused is why other ones, that are mounted, are not taken; empty if they are.
	Refused string `json:"refused,omitempty"`
}

// CertificatesChecksum tells apart what clients are served with: PEM of the authorities that they are verified by, and
// of the server's certificate.
func CertificatesChecksum(authorities, certificate []byte) string {
	hash := sha256.New()
	for _, part := range [][]byte{authorities, certificate} {
		sum := sha256.Sum256(part)
		hash.Write(sum[:])
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// MostRecoveries is how many recoveries are remembered.
const MostRecoveries = 5

// Cause is why data had to be recovered.
type Cause string

// The causes.
const (
	// DataLost says that there was no data although there are backups.
	DataLost Cause = "DataLost"
	// DataDamaged says that the database is damaged.
	DataDamaged Cause = "DataDamaged"
	// LogDamaged says that the write-ahead log is damaged, and the database is not.
	LogDamaged Cause = "LogDamaged"
	// DataStale says that the data is older than the backups: the volume was rolled back or exchanged.
	DataStale Cause = "DataStale"
	// DataDiffers says that the data of a member is not what a quorum of the others has: a disk may have changed it.
	DataDiffers Cause = "DataDiffers"
)

// Recovery is what was found wrong with data, and what has taken its place.
type Recovery struct {
	// Cause is what was found, Reason how that showed, and Found when.
	Cause  Cause     `json:"cause"`
	Reason string    `json:"reason,omitempty"`
	Found  time.Time `json:"found"`
	// Revision is the last one that the data had; 0 if that is not known.
	Revision int64 `json:"revision,omitempty"`
	// Written is when the data was written last; zero if that is not known.
	Written time.Time `json:"written,omitzero"`
	// KnownRevision is the last one that data or backups tell of, whether it could be restored or not.
	KnownRevision int64 `json:"knownRevision,omitempty"`
	// Aside is where the data was moved for people to look at; empty if there was none, or if it had to make room.
	Aside string `json:"aside,omitempty"`
	// Restored is what has taken its place; nil as long as that is not decided.
	Restored *Restored `json:"restored,omitempty"`
	// Missing says what was not restored.
	Missing string `json:"missing,omitempty"`
	// Finished is when etcd served again; zero until then.
	Finished time.Time `json:"finished,omitzero"`
}

// Took is how long a recovery took that has ended, with all attempts.
func (r *Recovery) Took() time.Duration { return r.Finished.Sub(r.Found) }

// Source is where restored data is from.
type Source string

// The sources.
const (
	// BackupDirectory has snapshots beside the data.
	BackupDirectory Source = "BackupDirectory"
	// BackupStore is the store of backups.
	BackupStore Source = "BackupStore"
	// Database is that of the data whose log is damaged.
	Database Source = "Database"
	// Members are the other members of the etcd, which have all that was ever acknowledged.
	Members Source = "Members"
	// Nothing could be restored: etcd began empty.
	Nothing Source = "Nothing"
)

// Restored is what data was restored from.
type Restored struct {
	From Source `json:"from"`
	// Backup is the name of a snapshot, or of the last object of the store that was used.
	Backup string `json:"backup,omitempty"`
	// Revision is the last one that was restored; etcd goes on with a much later one.
	Revision int64 `json:"revision,omitempty"`
	// Taken is when the backup was.
	Taken time.Time `json:"taken,omitzero"`
}

// Difference is what data that serves is not, although it should be: a disk may have changed it.
type Difference struct {
	// From is where it is otherwise.
	From Source `json:"from"`
	// Since is when that was found.
	Since time.Time `json:"since"`
	// Message says what other members have, and why this one does not join them again.
	Message string `json:"message,omitempty"`
	// Backup has other bytes of the revisions Changed, MostChanged at most. What was written anew since is gone.
	Backup  string    `json:"backup,omitempty"`
	Changed []Changed `json:"changed,omitempty"`
}

// MostChanged is how many changed revisions are remembered.
const MostChanged = 16

// Changed is a revision whose bytes are not what was written.
type Changed struct {
	Revision int64 `json:"revision"`
	// Key is that of etcd.
	Key string `json:"key"`
}

// What is done with a store.
const (
	Delta        = "delta"
	Full         = "full"
	Prune        = "prune"
	Verification = "verification"
	Start        = "start"
)

// Reasons why something that is done with a store fails. Whatever has no name may be the network.
const (
	Permission  = "permission"
	FullStore   = "full"
	Immutable   = "immutable"
	Key         = "key"
	Damaged     = "damaged"
	Gap         = "gap"
	Behind      = "behind"
	Timeout     = "timeout"
	Room        = "room"
	Unavailable = "unavailable"
)

// Store is what became of a store of backups.
type Store struct {
	// Delta is the last time at which the store had all changes, Full the newest full snapshot, Verification the last
	// time that the newest backups were verified and restored on trial.
	Delta        Operation `json:"delta"`
	Full         Operation `json:"full"`
	Verification Operation `json:"verification"`
	// Failures that go on, by operation.
	Failures []Failure `json:"failures,omitempty"`
}

// Operation is one on a store, when it succeeded last.
type Operation struct {
	// Succeeded is zero if it has not yet.
	Succeeded time.Time `json:"succeeded,omitzero"`
	// Revision up to which changes are in the store; 0 if it is not about one.
	Revision int64 `json:"revision,omitempty"`
	// Seconds that it took, of a verification.
	Seconds float64 `json:"seconds,omitempty"`
}

// Failure is an operation on a store that fails again and again.
type Failure struct {
	Operation string    `json:"operation"`
	Since     time.Time `json:"since"`
	Reason    string    `json:"reason"`
	// Message is an example: it changes with the reason, and else every ten minutes.
	Message string `json:"message"`
}

// Failure returns the failure of an operation; nil if it does not fail.
func (s *Store) Failure(operation string) *Failure {
	for i := range s.Failures {
		if s.Failures[i].Operation == operation {
			return &s.Failures[i]
		}
	}
	return nil
}

// What a Space is of.
const (
	Quota  = "quota"
	Volume = "volume"
)

// NearlyFull is the level from which on etcd will soon be out of space.
const NearlyFull = 85

// Space is how full something is.
type Space struct {
	Of string `json:"of"`
	// Level is 0, 70 or NearlyFull percent. It goes down only five percent below.
	Level int `json:"level"`
	// Used and Size are in bytes. What can be deleted for lack of room is not used.
	Used int64 `json:"used"`
	Size int64 `json:"size"`
}

// Skip is something that is not done for lack of room.
type Skip struct {
	What    string    `json:"what"`
	Since   time.Time `json:"since"`
	Message string    `json:"message"`
}
