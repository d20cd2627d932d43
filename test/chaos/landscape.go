package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// landscape is one that was started here.
type landscape struct{ name string }

func (l landscape) state() string { return ".landscape-" + l.name }

// run runs the landscape's own command.
func (l landscape) run(ctx context.Context, command string) error {
	c := exec.CommandContext(ctx, "bin/landscape", command, "--name", l.name)
	c.Stdout, c.Stderr = os.Stderr, os.Stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("landscape %s %s: %w", command, l.name, err)
	}
	return nil
}

// waitHealthy waits until the landscape says that all of its parts are. The error has the table of the last answer.
func (l landscape) waitHealthy(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ticker := time.NewTicker(5 * time.Second)
	defer ticker.Stop()
	for {
		// An answer that has begun counts.
		out, err := exec.CommandContext(context.WithoutCancel(ctx), "bin/landscape", "status", "--name",
			l.name).CombinedOutput()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not healthy: %w\n%s", l.name, err, out)
		case <-ticker.C:
		}
	}
}

// load takes the processors.
func load(ctx context.Context, o options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, o.duration)
	defer cancel()
	var loops []*exec.Cmd
	for range o.perProcessor * runtime.NumCPU() {
		loop := exec.CommandContext(ctx, self, burnCommand)
		loop.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := loop.Start(); err != nil {
			cancel()
			return errors.Join(err, waitAll(loops))
		}
		loops = append(loops, loop)
	}
	return waitAll(loops)
}

// waitAll waits for busy loops, which all end by being killed.
func waitAll(loops []*exec.Cmd) error {
	var errs []error
	for _, loop := range loops {
		if err := loop.Wait(); loop.ProcessState == nil || loop.ProcessState.Exited() {
			errs = append(errs, fmt.Errorf("a busy loop ended by itself: %w", err))
		}
	}
	return errors.Join(errs...)
}
