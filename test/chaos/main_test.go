package main

import (
	"strings"
	"testing"
	"time"
)

func TestWrongOptionsAreRefused(t *testing.T) {
	good := options{duration: time.Minute, recovery: time.Minute, landscapes: 1, perProcessor: 1}
	if err := good.validate(nil); err != nil {
		t.Errorf("good options: %v", err)
	}
	for want, change := range map[string]func(*options){
		"--duration is -1s":     func(o *options) { o.duration = -time.Second },
		"--recovery is 0s":      func(o *options) { o.recovery = 0 },
		"--landscapes is 0":     func(o *options) { o.landscapes = 0 },
		"--per-processor is -1": func(o *options) { o.perProcessor = -1 },
	} {
		wrong := good
		change(&wrong)
		if err := wrong.validate(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	if err := good.validate([]string{"up"}); err == nil || !strings.Contains(err.Error(), `not "up"`) {
		t.Errorf("with an argument, got %v", err)
	}
}
