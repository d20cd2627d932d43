package order

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
)

// Pool is a worker pool.
type Pool struct {
	Name, Type       string
	Minimum, Maximum int32
	Zones            []string
	// open: nobody has said how many machines yet.
	open bool
}

// String is the pool as ParsePool takes it.
func (p Pool) String() string {
	text := fmt.Sprintf("%s:%s:%d-%d", p.Name, p.Type, p.Minimum, p.Maximum)
	if len(p.Zones) > 0 {
		text += ":" + strings.Join(p.Zones, ",")
	}
	return text
}

// poolSyntax is what people are told.
const poolSyntax = "NAME:TYPE:MIN-MAX[:ZONE,…], such as pool:small:1-3:a,b"

// ParsePool reads NAME:TYPE:MIN-MAX[:ZONE,…]. One number is both the least and the most machines.
func ParsePool(text string) (Pool, error) {
	parts := strings.Split(text, ":")
	if len(parts) < 3 || len(parts) > 4 {
		return Pool{}, fmt.Errorf("%q is not %s", text, poolSyntax)
	}
	minimum, maximum, err := parseSize(parts[2])
	if err != nil {
		return Pool{}, fmt.Errorf("%q is not %s: %w", text, poolSyntax, err)
	}
	pool := Pool{Name: parts[0], Type: parts[1], Minimum: minimum, Maximum: maximum}
	if len(parts) == 4 {
		pool.Zones = strings.Split(parts[3], ",")
	}
	for _, part := range append([]string{pool.Name, pool.Type}, pool.Zones...) {
		if part == "" {
			return Pool{}, fmt.Errorf("%q is not %s: a part is empty", text, poolSyntax)
		}
	}
	return pool, nil
}

// size is digits only: no signs.
var size = regexp.MustCompile(`^(\d+)(?:-(\d+))?$`)

// parseSize reads MIN-MAX, or one number for both.
func parseSize(text string) (minimum, maximum int32, err error) {
	match := size.FindStringSubmatch(text)
	if match == nil {
		return 0, 0, fmt.Errorf("%q is not a number of machines, such as 1-3", text)
	}
	if match[2] == "" {
		match[2] = match[1]
	}
	least, err := strconv.ParseInt(match[1], 10, 32)
	if err != nil {
		return 0, 0, fmt.Errorf("%s is too large a number of machines", match[1])
	}
	most, err := strconv.ParseInt(match[2], 10, 32)
	switch {
	case err != nil:
		return 0, 0, fmt.Errorf("%s is too large a number of machines", match[2])
	case least > most:
		return 0, 0, fmt.Errorf("the least number of machines, %d, is larger than the most, %d", least, most)
	}
	return int32(least), int32(most), nil
}

// ParseSchedule reads START;END;LOCATION: when to sleep and to wake up, as cron expressions of five fields, and in
// which time zone. Start or end may be empty, and the location left out.
func ParseSchedule(text string) (gardencorev1beta1.HibernationSchedule, error) {
	var schedule gardencorev1beta1.HibernationSchedule
	parts := strings.Split(text, ";")
	if len(parts) > 3 {
		return schedule, fmt.Errorf("%q is not START;END;LOCATION, such as %q", text,
			"0 20 * * 1-5;0 7 * * 1-5;Europe/Berlin")
	}
	fields := []**string{&schedule.Start, &schedule.End, &schedule.Location}
	for i, part := range parts {
		if part = strings.TrimSpace(part); part != "" {
			*fields[i] = &part
		}
	}
	if schedule.Start == nil && schedule.End == nil {
		return schedule, fmt.Errorf("%q says neither when to sleep nor when to wake up", text)
	}
	return schedule, nil
}

// window is BEGIN-END, each as HHMMSS+hhmm.
var window = regexp.MustCompile(`^(\d{6}[+-]\d{4})-(\d{6}[+-]\d{4})$`)

// ParseWindow reads a maintenance window, such as 220000+0100-230000+0100.
func ParseWindow(text string) (*gardencorev1beta1.MaintenanceTimeWindow, error) {
	match := window.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("%q is not BEGIN-END, such as 220000+0100-230000+0100", text)
	}
	result := &gardencorev1beta1.MaintenanceTimeWindow{Begin: match[1], End: match[2]}
	if _, _, err := result.Parse(); err != nil {
		return nil, err
	}
	return result, nil
}

// ParseProfile reads the name of a CloudProfile, or NamespacedCloudProfile/NAME.
func ParseProfile(text string) gardencorev1beta1.CloudProfileReference {
	kind, name, ok := strings.Cut(text, "/")
	if !ok {
		kind, name = gardencorev1beta1.CloudProfileReferenceKindCloudProfile, text
	}
	return gardencorev1beta1.CloudProfileReference{Kind: kind, Name: name}
}
