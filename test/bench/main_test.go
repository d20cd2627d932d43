package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// namesOf are those of the areas that names choose.
func namesOf(t *testing.T, names ...string) []string {
	t.Helper()
	chosen, err := choose(areasWith(&settings{}), names)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, a := range chosen {
		found = append(found, a.name)
	}
	return found
}

// What builds a second Kubernetes, takes the machine's memory or an hour, is measured only by name.
func TestUsualAreas(t *testing.T) {
	usual := namesOf(t)
	for _, name := range []string{"restore", "growth", "up"} {
		if !slices.Contains(usual, name) {
			t.Errorf("%s is not among the usual ones: %q", name, usual)
		}
	}
	for _, name := range []string{"density", "upgrade", "fresh"} {
		if slices.Contains(usual, name) {
			t.Errorf("%s is among the usual ones: %q", name, usual)
		}
	}
}

// An upgrade starts the landscape anew, so that it comes after what goes on with one.
func TestAreasByName(t *testing.T) {
	got, want := namesOf(t, "upgrade", "density", "shoot"), []string{"shoot", "density", "upgrade"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if _, err := choose(areasWith(&settings{}), []string{"shoot", "moon"}); err == nil ||
		!strings.Contains(err.Error(), `"moon"`) || !strings.Contains(err.Error(), "restore") {
		t.Errorf("got %v, want an error that names moon and all areas", err)
	}
}

func TestUsageTellsOfAllAreas(t *testing.T) {
	areas := areasWith(&settings{})
	text := usage(areas)
	for _, a := range areas {
		mark := "  "
		if a.usual {
			mark = "* "
		}
		if !strings.Contains(text, "\n"+mark+a.name+" ") {
			t.Errorf("%s is missing, or has the wrong mark:\n%s", a.name, text)
		}
	}
	for _, said := range []string{olderVersion, "8 GB of disk", "starts the landscape " + benchLandscape.name} {
		if !strings.Contains(text, said) {
			t.Errorf("%q is missing:\n%s", said, text)
		}
	}
}

// An area that nobody is told of is measured by nobody: README.md, the Makefile and the chapter on tests name each.
func TestDocsNameAllAreas(t *testing.T) {
	for file, words := range map[string]*regexp.Regexp{
		"README.md": regexp.MustCompile(`(?m)^\| .make bench. .*$`),
		"Makefile":  regexp.MustCompile(`(?m)^# AREAS are some of (.*\n# )*`),
		// A table, to its end.
		"docs/testing.md": regexp.MustCompile(`(?m)^\| areas \|.*\n(\|.*\n)+`),
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", file))
		if err != nil {
			t.Fatal(err)
		}
		told := words.FindString(string(text))
		for _, a := range areasWith(&settings{}) {
			if !regexp.MustCompile(`\b` + a.name + `\b`).MatchString(told) {
				t.Errorf("%s does not tell of %s among areas: %q", file, a.name, told)
			}
		}
	}
}

func TestFlags(t *testing.T) {
	var s settings
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	s.addFlags(flags)
	if err := flags.Parse([]string{"--density-count", "7", "--restore-megabytes=10", "density"}); err != nil {
		t.Fatal(err)
	}
	want := settings{restoreSettings{10}, densitySettings{most: 7, batch: 3, patience: 10 * time.Minute, spareGiB: 2}}
	if s != want || flags.Arg(0) != "density" {
		t.Errorf("got %+v and %q, want %+v", s, flags.Args(), want)
	}
	for _, s := range []restoreSettings{{}, {-1}} {
		_, err := measureRestore(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "--restore-megabytes") {
			t.Errorf("%+v: got %v", s, err)
		}
	}
}

// Every figure has a line in the report: others would be recorded and never seen.
func TestFiguresAreReported(t *testing.T) {
	d := density{names: []string{"dense-0"}}
	found := slices.Concat(growthFigures(0, zeroCounts, 0, 0), d.figures(0, 0))
	for _, name := range []string{
		figureFirstLoad, figureFirstRows, figureAllRows, figureConnected, figureShown50, figureShown99, figureWatches,
		figureDashboardRest, figureDashboardMemory, figureDashboardPeak,
		figureRestore, figureRestorePeer, figureTrial, figureKilled, figureUpgrade, figureUpgradeSilent,
		figureUpgradeWorker,
	} {
		found = append(found, measurement{Name: name})
	}
	results := map[string]measurement{}
	for _, m := range found {
		m.How = "how it was"
		results[m.Name] = m
	}
	text := render(results)
	for name := range results {
		if !strings.Contains(text, "| "+name+" | ") || strings.Contains(text, "| "+name+" | not measured") ||
			!strings.Contains(text, "- "+name+": how it was.") {
			t.Errorf("%s is not reported", name)
		}
	}
}

// What an attempt failed of is told, not that the last one was cut off.
func TestEventuallyTellsTheLastFailure(t *testing.T) {
	away, tries := errors.New("away"), 0
	err := eventually(t.Context(), 20*time.Millisecond, time.Millisecond, func(ctx context.Context) error {
		if tries++; tries < 3 {
			return away
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, away) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	tries = 0
	if err := eventually(t.Context(), time.Minute, time.Millisecond, func(context.Context) error {
		if tries++; tries < 3 {
			return away
		}
		return nil
	}); err != nil || tries != 3 {
		t.Errorf("got %v after %d tries", err, tries)
	}
}
