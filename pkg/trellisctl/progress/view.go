package progress

import (
	"fmt"
	"time"

	gardencorev1beta1 "github.com/trellis-garden/trellis/pkg/apis/core/v1beta1"
	"github.com/trellis-garden/trellis/pkg/trellisctl/shown"
)

// View turns looks at a Shoot into lines.
type View struct {
	goal  Goal
	begun time.Time
	sight Sight
	// told is what the last line of a pipe said.
	told string
}

// NewView begins to wait at a time.
func NewView(goal Goal, now time.Time) *View {
	return &View{goal: goal, begun: now, sight: Sight{Head: "Waiting", Detail: "for the garden"}}
}

// See takes in what the Shoot is like; nil if it does not exist any more.
func (v *View) See(shoot *gardencorev1beta1.Shoot) Sight {
	v.sight = v.goal.Look(shoot)
	return v.sight
}

// Lost takes in that the garden does not answer. What the Shoot was like stands until it does.
func (v *View) Lost(err error) {
	v.sight.Detail = "no connection to the garden, trying again: " + shown.Text(err.Error())
}

// Sight is what was seen last.
func (v *View) Sight() Sight { return v.sight }

// Line is the line of a terminal, which is rewritten: never longer than it has columns.
func (v *View) Line(now time.Time, columns int) string {
	return shown.Cut(v.line(now), columns)
}

// Change is the line of a pipe or a file, if something has changed since the last one; empty if not.
func (v *View) Change(now time.Time) string {
	if said := v.sight.Head + " " + v.sight.Detail; said != v.told {
		v.told = said
		return v.line(now)
	}
	return ""
}

func (v *View) line(now time.Time) string {
	return fmt.Sprintf("%s, %s: %s", v.sight.Head, now.Sub(v.begun).Round(time.Second), v.sight.Detail)
}
