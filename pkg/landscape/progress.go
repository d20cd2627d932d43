package landscape

import (
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
	stop          chan struct{}
	stopped       sync.WaitGroup
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

// Step says what the running phase does at the moment.
func (p *Progress) Step(format string, args ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	detail := fmt.Sprintf(format, args...)
	if detail == p.detail {
		return
	}
	p.detail = detail
	p.note("  %s", detail)
	if !p.live {
		fmt.Fprintf(p.out, "  %6s  %s\n", seconds(time.Since(p.start)), detail)
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
