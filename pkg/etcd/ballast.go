package etcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// ballastFile takes room on the volume for the day when all else is full of data that etcd needs. A start then deletes
// it, and etcd has room to start, compact and defragment.
const ballastFile = "ballast"

func (v volume) ballast() int64 { return min(walSegmentBytes, v.size/16) }

func (s *Steward) ballastPath() string { return filepath.Join(s.options.DataDir, ballastFile) }

// keepBallast makes the ballast, when there is ample room for it.
func (s *Steward) keepBallast(v volume) error {
	if v.free < 2*v.reserve()+v.ballast() {
		return nil
	}
	if _, err := os.Stat(s.ballastPath()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(s.ballastPath()+partialSuffix, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("ballast: %w", err)
	}
	err = errors.Join(unix.Fallocate(int(file.Fd()), 0, 0, v.ballast()), file.Close())
	if errors.Is(err, unix.EOPNOTSUPP) {
		// Where space cannot be taken ahead, there is the empty file, so that it is not tried again.
		err = nil
	}
	if err == nil {
		err = os.Rename(file.Name(), s.ballastPath())
	}
	if err != nil {
		return fmt.Errorf("ballast: %w", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// dropBallast deletes the ballast when a volume has not even so much room as it takes.
func (s *Steward) dropBallast() error {
	v, err := s.measure(s.options.DataDir)
	if err != nil || v.free >= v.ballast() {
		return err
	}
	if err := os.Remove(s.ballastPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("ballast: %w", err)
	}
	return nil
}
