package landscape

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Progress shows people how far a run is: on a terminal the running phase is one live line, elsewhere every phase is a
// line when it starts and one when it ends. Everything also goes to a log.
type Progress struct {
	out  io.Writer
	live bool
	// width of the terminal.
	width int

	mutex sync.Mutex
	log   io.Writer
	// title, detail and start describe the running phase.
	title, detail string
	start         time.Time
	// seen is what the phase has reached; advanced is called when something is new.
	seen     map[string]bool
	advanced func()
	stop     chan struct{}
	stopped  sync.WaitGroup
}

// NewProgress writes to a file, live when that is a terminal.
func NewProgress(out *os.File) *Progress {
	p := &Progress{out: out, log: io.Discard}
	if term.IsTerminal(int(out.Fd())) {
		p.live = true
		p.width = 80
		if width, _, err := term.GetSize(int(out.Fd())); err == nil && width > 20 {
			p.width = width
		}
	}
	return p
}

// logTo sets where everything is written down.
func (p *Progress) logTo(log io.Writer) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.log = log
}

// Write makes a Progress the place for the output of programs: it goes to the log only.
func (p *Progress) Write(data []byte) (int, error) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.log.Write(data)
}

// begin starts a phase.
func (p *Progress) begin(title string) {
	p.mutex.Lock()
	p.title, p.detail, p.start, p.stop = title, "", time.Now(), make(chan struct{})
	p.seen = map[string]bool{}
	p.note("%s", title)
	if !p.live {
		fmt.Fprintf(p.out, "%s …\n", title)
	}
	stop := p.stop
	p.mutex.Unlock()
	if p.live {
		p.stopped.Go(func() { p.animate(stop) })
	}
}

// Step says what the running phase does at the moment, which is progress when it did not do so before.
func (p *Progress) Step(format string, args ...any) {
	detail := fmt.Sprintf(format, args...)
	p.reached(detail)
	p.show(detail)
}

// show says what the running phase waits for.
func (p *Progress) show(detail string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if detail == p.detail {
		return
	}
	p.detail = detail
	p.note("  %s", detail)
	if !p.live {
		fmt.Fprintf(p.out, "  %6s  %s\n", seconds(time.Since(p.start)), detail)
	}
}

// reached notes progress of the running phase. What it had reached before is none: something that fails and is tried
// again comes to the same places. So texts of errors, which may always be new, do not belong here.
func (p *Progress) reached(milestone string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if p.seen[milestone] {
		return
	}
	p.seen[milestone] = true
	if p.advanced != nil {
		p.advanced()
	}
}

// stalledError says for how long a phase made no progress, and at what it was.
type stalledError struct {
	after  time.Duration
	detail string
}

func (e *stalledError) Error() string {
	text := fmt.Sprintf("given up after %s without progress", e.after)
	if e.detail != "" {
		text += "; the last step: " + e.detail
	}
	return text
}

// whileProgress returns a context that ends when the running phase makes no progress for that long, with a
// stalledError as its cause. How long the phase takes does not matter: a slow machine gets there too.
func (p *Progress) whileProgress(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(limit, func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		cancel(&stalledError{after: limit, detail: p.detail})
	})
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.advanced = func() { timer.Reset(limit) }
	return ctx, func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		p.advanced = nil
		timer.Stop()
		cancel(nil)
	}
}

// end closes the phase.
func (p *Progress) end(err error) {
	close(p.stop)
	p.stopped.Wait()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	took := time.Since(p.start)
	mark, outcome := "✔", "done"
	if err != nil {
		mark, outcome = "✘", "failed"
	}
	p.note("%s: %s in %s", p.title, outcome, seconds(took))
	if p.live {
		fmt.Fprintf(p.out, "\r\033[K%s %s %*s\n", mark, p.title, max(1, 44-len(p.title)), seconds(took))
		return
	}
	fmt.Fprintf(p.out, "%s %s (%s)\n", mark, p.title, seconds(took))
}

// animate redraws the live line until the phase ends.
func (p *Progress) animate(stop <-chan struct{}) {
	ticker := time.NewTicker(120 * time.Millisecond)
	defer ticker.Stop()
	wheel := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-ticker.C:
		}
		p.mutex.Lock()
		line := fmt.Sprintf("%c %s %s", wheel[i%len(wheel)], p.title, seconds(time.Since(p.start)))
		if p.detail != "" {
			line += " · " + p.detail
		}
		fmt.Fprintf(p.out, "\r\033[K%s", cut(line, p.width-1))
		p.mutex.Unlock()
	}
}

// note writes a line to the log.
func (p *Progress) note(format string, args ...any) {
	fmt.Fprintf(p.log, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

func cut(line string, width int) string {
	runes := []rune(strings.ReplaceAll(line, "\n", " "))
	if len(runes) <= width {
		return string(runes)
	}
	return string(runes[:width-1]) + "…"
}

func seconds(d time.Duration) string {
	if d >= time.Minute {
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%.1fs", d.Seconds())
}
