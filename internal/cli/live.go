package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// isTerminal reports whether w shows text to a person at once.
func isTerminal(w any) bool {
	if o, ok := w.(*watchedWriter); ok {
		w = o.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// live is a block of lines at the bottom of a terminal, one for each turn
// that runs. Where w is no terminal it prints nothing.
type live struct {
	w     io.Writer
	on    bool
	every time.Duration
	now   func() time.Time
	width func() int

	mu    sync.Mutex
	order []string
	lines map[string]*liveLine
	shown int // lines on the screen now
	last  time.Time
}

type liveLine struct {
	label   string
	tokens  int
	started time.Time // of the first token
}

// maxLive bounds the block; further turns are counted.
const maxLive = 8

func newLive(w io.Writer) *live {
	l := &live{w: w, on: isTerminal(w), every: 100 * time.Millisecond, now: time.Now, lines: map[string]*liveLine{}}
	l.width = func() int { return 80 }
	if f, ok := w.(*os.File); ok && l.on {
		l.width = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 10 {
				return n
			}
			return 80
		}
	}
	return l
}

// update shows how many tokens the turn has by now.
func (l *live) update(id, label string, tokens int) {
	if !l.on {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	line, ok := l.lines[id]
	if !ok {
		line = &liveLine{label: label}
		l.lines[id] = line
		l.order = append(l.order, id)
	}
	if tokens > 0 && line.started.IsZero() {
		line.started = l.now()
	}
	line.tokens = tokens
	if now := l.now(); now.Sub(l.last) >= l.every {
		l.last = now
		l.draw()
	}
}

// done takes the turn's line away.
func (l *live) done(id string) {
	if !l.on {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, ok := l.lines[id]; !ok {
		return
	}
	delete(l.lines, id)
	for i, o := range l.order {
		if o == id {
			l.order = append(l.order[:i], l.order[i+1:]...)
			break
		}
	}
	l.draw()
}

// print writes lines that stay, to out, above the block.
func (l *live) print(out io.Writer, text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.erase()
	fmt.Fprint(out, text)
	if l.on {
		l.draw()
	}
}

func (l *live) erase() {
	if l.shown > 0 {
		fmt.Fprintf(l.w, "\x1b[%dA\x1b[J", l.shown)
		l.shown = 0
	}
}

func (l *live) draw() {
	var b strings.Builder
	if l.shown > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", l.shown)
	}
	l.shown = 0
	width := l.width()
	for i, id := range l.order {
		if i == maxLive {
			fmt.Fprintf(&b, "… and %d more\n", len(l.order)-maxLive)
			l.shown++
			break
		}
		line := l.lines[id]
		text := line.label + "  " + "reading the prompt"
		if line.tokens > 0 {
			text = line.label + "  " + tokensText(line.tokens, l.now().Sub(line.started))
		}
		b.WriteString(cutTo(text, width-1))
		b.WriteByte('\n')
		l.shown++
	}
	fmt.Fprint(l.w, b.String())
}

// tokensText is "41 tokens, 82.3 tokens/s".
func tokensText(tokens int, took time.Duration) string {
	s := fmt.Sprintf("%d tokens", tokens)
	if tokens == 1 {
		s = "1 token"
	}
	if tokens > 1 && took > 0 {
		s += fmt.Sprintf(", %.1f tokens/s", float64(tokens)/took.Seconds())
	}
	return s
}

func cutTo(s string, width int) string {
	r := []rune(s)
	if len(r) <= width {
		return s
	}
	return string(r[:width-1]) + "…"
}
