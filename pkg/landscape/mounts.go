package landscape

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// checkNoMounts fails when something is mounted below a folder: removing it would reach into another file system.
func checkNoMounts(dir string) error {
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	defer file.Close()
	found, err := mountsBelow(file, dir)
	if err != nil {
		return err
	}
	if len(found) > 0 {
		return fmt.Errorf("%s is mounted; unmount it, then try again", strings.Join(found, ", "))
	}
	return nil
}

// mountsBelow reads the mount points below a folder from mountinfo (proc(5)), where blanks are written as \040.
func mountsBelow(mountinfo io.Reader, dir string) ([]string, error) {
	var found []string
	scanner := bufio.NewScanner(mountinfo)
	for scanner.Scan() {
		fields := strings.Fields(scanner.Text())
		if len(fields) < 5 {
			continue
		}
		point := strings.ReplaceAll(fields[4], `\040`, " ")
		if strings.HasPrefix(point, strings.TrimSuffix(dir, "/")+"/") {
			found = append(found, point)
		}
	}
	return found, scanner.Err()
}
