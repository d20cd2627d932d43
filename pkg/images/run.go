package images

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// logFunc takes one line of a program's output.
type logFunc func(line string)

// run starts a program and waits for it; its output goes to log line by line, and the last lines into the error.
func run(ctx context.Context, log logFunc, dir string, environment []string, name string, arguments ...string) error {
	command := exec.CommandContext(ctx, name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), environment...)
	return runCommand(command, log)
}

const keptLines = 15

func runCommand(command *exec.Cmd, log logFunc) error {
	reader, writer := io.Pipe()
	command.Stdout, command.Stderr = writer, writer
	var last []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		scanner := bufio.NewScanner(reader)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			log(scanner.Text())
			last = append(last, scanner.Text())
			if len(last) > keptLines {
				last = last[1:]
			}
		}
		_, _ = io.Copy(io.Discard, reader)
	}()
	err := command.Run()
	writer.Close()
	<-done
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", command.Args[0], err, strings.Join(last, "\n"))
	}
	return nil
}
